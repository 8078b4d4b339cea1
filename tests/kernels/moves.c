/* Ops that move rows, over widths: rows of one number, of whole vectors and of thousands of numbers; more rows than a
 * part of the work has. Moved numbers are equal. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a row. */
static const int widths[] = { 1, 7, 8, 20, 128, 1022, 1032, 2100 };
enum { N_WIDTHS = sizeof(widths) / sizeof(*widths) };

/* ---- gather -------------------------------------------------------------- */

static void gather_on(struct backend *be, int K, void *out[2])
{
    enum { HEADS = 4, SOURCE = 90, KEPT = 70 + 0 + 3 + 90 };
    static const int n[HEADS] = { 70, 0, 3, 90 };
    size_t n_src = (size_t)(HEADS * SOURCE * K), n_dst = (size_t)(KEPT * K), to = 0;
    void *k = stored(be, "k", n_src), *v = stored(be, "v", n_src);
    int32_t *kept = integers(be, "kept", KEPT, SOURCE);
    struct kv_rows src[HEADS], dst[HEADS];

    out[0] = stored_space(be, n_dst);
    out[1] = stored_space(be, n_dst);
    for (int h = 0; h < HEADS; to += (size_t)(n[h++] * K)) {
        size_t from = (size_t)(h * SOURCE * K);
        src[h] = (struct kv_rows){ stored_at(be, k, from), stored_at(be, v, from), SOURCE };
        dst[h] = (struct kv_rows){ stored_at(be, out[0], to), stored_at(be, out[1], to), n[h] };
    }
    be->gather(be, dst, src, kept, HEADS, K);
    must_sync(be);
    void *inputs[] = { k, v, kept };
    for (int i = 0; i < 3; i++)
        be->free(be, inputs[i]);
}

static void check_gather(const struct pair *p)
{
    for (int w = 0; w < N_WIDTHS; w++) {
        size_t n = (size_t)(163 * widths[w]);
        void *want[2], *got[2];
        gather_on(p->want, widths[w], want);
        gather_on(p->got, widths[w], got);
        same_stored(p, (struct results){ want[0], got[0], n }, EXACT, "gather k");
        same_stored(p, (struct results){ want[1], got[1], n }, EXACT, "gather v");
    }
}

Test(kernels, gather_of_rows_of_any_width)
{
    each_pair(check_gather);
}

/* ---- slots --------------------------------------------------------------- */

static void copy_slots_on(struct backend *be, int K, void *out[2])
{
    enum { LAYERS = 2, G = 3, SLOTS = 220, N = 50 };
    size_t n = (size_t)(LAYERS * G * SLOTS * K);
    const struct kv_shape shape = { LAYERS, 2 * G, G, K, .dtype = be->dtype };

    out[0] = stored(be, "k", n);
    out[1] = stored(be, "v", n);
    be->copy_slots(be, &(struct kv_store){ out[0], out[1], SLOTS }, &shape,
                   &(struct slot_copy){ 3, N, (const int32_t[]){ 170, 60, 115 }, 3 });
    be->copy_slots(be, &(struct kv_store){ out[0], out[1], SLOTS }, &shape, &(struct slot_copy){ 3, N, NULL, 0 });
    be->copy_slots(be, &(struct kv_store){ out[0], out[1], SLOTS }, &shape,
                   &(struct slot_copy){ 3, N / 3, (const int32_t[]){ 20 }, 1 });
    must_sync(be);
}

static void check_copy_slots(const struct pair *p)
{
    for (int w = 0; w < N_WIDTHS; w++) {
        size_t n = (size_t)(2 * 3 * 220 * widths[w]);
        void *want[2], *got[2];
        copy_slots_on(p->want, widths[w], want);
        copy_slots_on(p->got, widths[w], got);
        same_stored(p, (struct results){ want[0], got[0], n }, EXACT, "copy_slots k");
        same_stored(p, (struct results){ want[1], got[1], n }, EXACT, "copy_slots v");
    }
}

Test(kernels, copy_slots_of_any_width)
{
    each_pair(check_copy_slots);
}

static void check_copied(const struct pair *p)
{
    enum { LAYERS = 2, G = 3, GROUP = 3, K = 64, HEADS = LAYERS * G, SLOTS = 40, N = HEADS * SLOTS * K };
    const int32_t to[] = { 7, 30, 18 };
    const struct kv_shape shape = { LAYERS, G * GROUP, G, K, .dtype = p->got->dtype };
    struct backend *be = p->got;

    for (int n = 0; n <= 6; n += 3) { // 6: up to the first place that is written
        void *k = stored(be, "k", N), *v = stored(be, "v", N);
        float *want[] = { host_numbers("k", N), host_numbers("v", N) };
        const struct slot_copy copy = { 1, n, to, 3 };
        be->copy_slots(be, &(struct kv_store){ k, v, SLOTS }, &shape, &copy);
        float *got[] = { read_stored(be, k, N, "copy_slots k"), read_stored(be, v, N, "copy_slots v") };
        for (int i = 0; i < 2; i++) {
            for (int h = 0; h < HEADS; h++)
                for (int d = 0; d < copy.n_to; d++)
                    memcpy(want[i] + (h * SLOTS + to[d]) * K, want[i] + (h * SLOTS + 1) * K,
                           (size_t)(copy.n * K) * sizeof(float));
            same_numbers(p, (struct host_results){ want[i], got[i], N }, EXACT, "copy_slots");
            free(want[i]);
            free(got[i]);
        }
        be->free(be, k);
        be->free(be, v);
    }
}

Test(kernels, copy_slots)
{
    each_pair(check_copied);
}

/* ---- repeat -------------------------------------------------------------- */

/* Bytes of a row, from one row to the next, and the address of the first. */
static const struct pattern {
    size_t bytes, pitch, first;
    int n;
} patterns[] = { { 4, 40, 8, 5 },         { 16, 16, 0, 6 },        { 3, 3, 0, 7 },       { 17000, 17008, 16, 3 },
                 { 17001, 17008, 16, 3 }, { 17004, 17007, 16, 2 }, { 5004, 5008, 4, 4 }, { 17000, 17008, 2, 2 },
                 { 160, 176, 8, 1 },      { 160, 164, 16, 3 } };

static void check_repeat(const struct pair *p)
{
    enum { BYTES = 70000 };
    struct backend *be = p->got;
    char *host = calloc(BYTES, 1), *want = calloc(BYTES, 1), *got = calloc(BYTES, 1);
    struct err err = { 0 };

    for (size_t i = 0; i < BYTES; i++)
        host[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        struct pattern at = patterns[i];
        memset(want, 0x55, BYTES);
        char *device = bytes_from(be, want, BYTES);
        be->repeat(be, device + at.first, at.pitch, at.n, host, at.bytes);
        for (int r = 0; r < at.n; r++)
            memcpy(want + at.first + (size_t)r * at.pitch, host, at.bytes);
        cr_assert_eq(be->read(be, got, device, BYTES, &err), 0, "%s", err.msg);
        cr_assert_eq(memcmp(want, got, BYTES), 0, "%s: %d rows of %zu bytes, %zu apart, from %zu on", p->name, at.n,
                     at.bytes, at.pitch, at.first);
        be->free(be, device);
    }
    free(host);
    free(want);
    free(got);
}

Test(kernels, repeat_of_any_width)
{
    each_pair(check_repeat);
}

/* What is counted around ops, and that the fence of fenced.h is closed between them. */
#include "kernels/around.h"
#include "kernels/timed.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/fenced.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct backend *timed_reference(const char *dtype)
{
    struct err err = { 0 };
    struct backend *inner =
        backend_open(&(struct backend_options){ .name = "reference", .dtype = dtype, .n_threads = 1 }, &err);
    struct backend *be = inner ? timed_open(inner, &err) : NULL;

    cr_assert(be, "%s", err.msg);
    cr_assert(strcmp(be->name, "reference") == 0 && be->dtype == inner->dtype && be->pass_rows == inner->pass_rows);
    return be;
}

/* What the list says about an op; all 0 when it was not called. */
static struct op_time op_of(const struct backend *be, const char *name)
{
    struct op_time all[TIMED_OPS];
    int n = timed_list(be, all);

    for (int i = 0; i < n; i++) {
        cr_assert(i == 0 || all[i].seconds <= all[i - 1].seconds);
        if (strcmp(all[i].name, name) == 0)
            return all[i];
    }
    return (struct op_time){ 0 };
}

static void expect(const struct backend *be, const char *name, int64_t calls, double flop, double bytes)
{
    struct op_time t = op_of(be, name);

    cr_assert(t.calls == calls && t.flop == flop && t.bytes == bytes,
              "%s: %lld calls, %g flop, %g bytes, not %lld, %g, %g", name, (long long)t.calls, t.flop, t.bytes,
              (long long)calls, flop, bytes);
    cr_assert_geq(t.seconds, 0);
}

/* Every element there is space for, whatever the op reads. */
enum { MANY = 4096 };

Test(timed, counts_products)
{
    struct err err = { 0 };
    struct backend *be = timed_reference("bf16");
    void *x = stored(be, "x", MANY), *out = stored(be, "out", MANY);
    float *host = host_numbers("w", MANY), *sum = numbers(be, "sum", MANY);
    struct mat part[2] = { mat_of(host, 5, 8), mat_of(host, 2, 8) };
    struct weight *w = be->weight_new(be, part, 2, &err);

    expect(be, "weight_new", 1, 0, 7 * 8 * (4 + 2));
    be->gemm(be, stored_mat(be, out, 3, 7), stored_mat(be, x, 3, 8), w, NULL, GEMM_SET);
    expect(be, "gemm", 1, 2 * 3 * 7 * 8, 2 * (3 * 8 + 7 * 8 + 3 * 7));
    be->gemm(be, mat_of(sum, 3, 7), stored_mat(be, x, 3, 8), w, NULL, GEMM_ADD);
    expect(be, "gemm", 2, 2 * 2 * 3 * 7 * 8, 2 * 2 * (3 * 8 + 7 * 8) + 2 * 3 * 7 + 2 * 4 * 3 * 7);
    struct best *best = be->alloc(be, 3 * sizeof(*best), &err);
    be->best(be, best, stored_mat(be, x, 3, 8), w);
    expect(be, "best", 1, 2 * 3 * 7 * 8, 2 * (3 * 8 + 7 * 8) + 3 * 12);
    struct drawn_token *drawn = be->alloc(be, 3 * sizeof(*drawn), &err);
    const double unit[3] = { 0 };
    be->draw(be, drawn, stored_mat(be, x, 3, 8), w, &(struct draw_job){ .unit = unit, .temperature = 1 });
    expect(be, "draw", 1, 2 * 3 * 7 * 8, 2 * (3 * 8 + 7 * 8) + 3 * 16);
    be->weight_free(be, w);
    free(host);
    void *all[] = { x, out, sum, best, drawn };
    for (int i = 0; i < 5; i++)
        be->free(be, all[i]);
    be->close(be);
}

/* One row uses two experts of four, three rows may use all. */
Test(timed, counts_the_experts_that_are_used)
{
    enum { D = 4, F = 3, E = 4, FLOP = 2 * D * E + 2 * (2 * 2 * F * D + 2 * F * D), BYTES = 2 * F * D + D * F };
    struct err err = { 0 };
    struct backend *be = timed_reference("f32");
    float *host = host_numbers("w", MANY);
    struct mat shape[] = { mat_of(host, E, D), mat_of(host, 2 * F, D), mat_of(host, D, F) };
    struct weight *w[3];
    for (int i = 0; i < 3; i++)
        w[i] = be->weight_new(be, &shape[i], 1, &err);
    const struct weight *gate_up[] = { w[1], w[1], w[1], w[1] }, *down[] = { w[2], w[2], w[2], w[2] };
    const struct experts experts = {
        .router = w[0], .gate_up = gate_up, .down = down, .n = E, .n_used = 2, .width = F, .renormalise = true
    };
    float *x = numbers(be, "x", MANY), *normed = numbers(be, "normed", MANY);

    be->moe(be, mat_of(x, 1, D), mat_of(normed, 1, D), &experts);
    expect(be, "moe", 1, FLOP, 4 * (D * E + 2 * BYTES + 3 * D));
    be->moe(be, mat_of(x, 3, D), mat_of(normed, 3, D), &experts);
    expect(be, "moe", 2, 4 * FLOP, 4 * (2 * D * E + (2 + 4) * BYTES + 4 * 3 * D));
    for (int i = 0; i < 3; i++)
        be->weight_free(be, w[i]);
    be->free(be, x);
    be->free(be, normed);
    free(host);
    be->close(be);
}

/* Two spans of a text: rows see 3, 4, 5 keys and 1, 2. */
Test(timed, counts_the_keys_that_are_seen)
{
    enum { G = 2, GROUP = 3, H = G * GROUP, K = 4, T = 5 };
    struct backend *be = timed_reference("f32");
    const struct attn_span spans[] = { { 0, 3, 0, 5 }, { 3, 2, 5, 2 } };
    void *q = stored(be, "q", MANY), *k = stored(be, "k", MANY), *v = stored(be, "v", MANY),
         *device = bytes_from(be, spans, sizeof(spans));
    float *part = space(be, MANY), *lse = space(be, MANY);
    struct attn_job job = { .kind = ATTN_TEXT,
                            .q = q,
                            .spans = { .host = spans, .device = device, .n = 2 },
                            .store = { k, v, 10 },
                            .n_tokens = T,
                            .n_heads = H,
                            .n_kv_heads = G,
                            .head_dim = K,
                            .scale = 1,
                            .part = part,
                            .lse = lse };
    const double rows = T * H, keys = G * (5 + 2), q_and_part = 2 * 4 * K * rows;

    be->attend(be, &job);
    expect(be, "attend text", 1, 4 * K * H * (3 + 4 + 5 + 1 + 2), q_and_part + 4 * 2 * K * keys + 4 * rows);
    job.kind = ATTN_WHOLE;
    be->attend(be, &job);
    expect(be, "attend whole", 1, 4 * K * H * (3 * 5 + 2 * 2), q_and_part + 4 * 2 * K * keys + 4 * rows);
    void *all[] = { q, k, v, device, part, lse };
    for (int i = 0; i < 6; i++)
        be->free(be, all[i]);
    be->close(be);
}

/* Three tokens that share a cache of 6 and 4 rows, and one a cache of 1 and 0. */
Test(timed, counts_the_rows_of_shared_caches)
{
    enum { G = 2, GROUP = 3, H = G * GROUP, K = 4, T = 4 };
    struct backend *be = timed_reference("f32");
    const struct attn_span spans[] = { { 0, 3, 1, 0 }, { 3, 1, 0, 0 } };
    void *q = stored(be, "q", MANY), *k = stored(be, "k", MANY), *v = stored(be, "v", MANY);
    const struct kv_rows rows[] = { { k, v, 1 }, { k, v, 0 }, { k, v, 6 }, { k, v, 4 } };
    void *on_device = bytes_from(be, rows, sizeof(rows)), *device = bytes_from(be, spans, sizeof(spans));
    void *out = stored_space(be, T * H * K);
    const struct attn_job job = { .kind = ATTN_SHARED,
                                  .q = q,
                                  .spans = { .host = spans, .device = device, .n = 2 },
                                  .table = { rows, on_device, 1 },
                                  .n_tokens = T,
                                  .n_heads = H,
                                  .n_kv_heads = G,
                                  .head_dim = K,
                                  .scale = 1,
                                  .out = stored_mat(be, out, T, H * K) };

    be->attend(be, &job);
    expect(be, "attend shared", 1, 4 * K * GROUP * (3 * (6 + 4) + 1), 4 * (2 * T * H * K + 2 * K * (1 + 6 + 4)));
    void *all[] = { q, k, v, on_device, device, out };
    for (int i = 0; i < 6; i++)
        be->free(be, all[i]);
    be->close(be);
}

Test(timed, counts_what_moves)
{
    struct err err = { 0 };
    struct backend *be = timed_reference("f32");
    char host[40] = { 0 };
    char *a = be->alloc(be, 100, &err), *b = be->alloc(be, 100, &err);

    be->write(be, a, host, 40);
    be->write(be, a + 40, host, 20);
    cr_assert_eq(be->read(be, host, a, 30, &err), 0);
    be->copy(be, b, a, 10);
    be->repeat(be, b, 20, 3, host, 16);
    expect(be, "write", 2, 0, 60);
    expect(be, "read", 1, 0, 30);
    expect(be, "copy", 1, 0, 20);
    expect(be, "repeat", 1, 0, 16 + 3 * 16);
    be->free(be, a);
    be->free(be, b);
    be->close(be);
}

/* ---- the fence ---------------------------------------------------------- */

static volatile float seen;

/* The address sanitizer would take the signal for itself. */
static void default_signal(void)
{
    signal(SIGSEGV, SIG_DFL);
}

Test(fenced, device_memory_cannot_be_read, .init = default_signal, .signal = SIGSEGV)
{
    struct backend *be = fenced_open("f32");
    float *x = numbers(be, "x", 100);
    seen = x[50];
}

Test(fenced, device_memory_cannot_be_written, .init = default_signal, .signal = SIGSEGV)
{
    struct backend *be = fenced_open("bf16");
    float *x = numbers(be, "x", 100);
    x[50] = 1;
}

Test(fenced, weights_are_device_memory, .init = default_signal, .signal = SIGSEGV)
{
    struct err err = { 0 };
    struct backend *be = fenced_open("f32");
    float *host = host_numbers("w", 100);
    struct mat part = mat_of(host, 10, 10);
    struct weight *w = be->weight_new(be, &part, 1, &err);
    seen = *(float *)w->at;
}

/* An op that reads beyond its array meets a page that is never open. */
Test(fenced, the_end_of_an_allocation_is_an_edge, .init = default_signal, .signal = SIGSEGV)
{
    struct err err = { 0 };
    struct backend *be = fenced_open("f32");
    char host[64] = { 0 };
    char *at = be->alloc(be, 64, &err), *to = be->alloc(be, 64, &err);
    be->write(be, at, host, 64);
    be->copy(be, to, at + 1, 64);
}

Test(fenced, ops_open_it)
{
    struct err err = { 0 };
    struct backend *be = fenced_open("f32");
    float *x = numbers(be, "x", 100), back[100];

    be->gelu(be, mat_of(x, 10, 10));
    cr_assert_eq(be->read(be, back, x, sizeof(back), &err), 0);
    be->free(be, x);
    be->close(be);
}

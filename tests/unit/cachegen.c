/* cachegen against LMCache's formula and torchac (tests/golden/cachegen/golden.txt), and its streams as hostile
 * bytes. */
#include "base/digest.h"
#include "base/file.h"
#include "codes/cachegen_codes.h"
#include "loader/libevicpress/evp_payload.h"
#include "tests/unit/cache.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

enum { HEADS = 3, TEXT = 65, STREAMS = 0, SIZES, CDFS, MAXIMA };

/* A side of a layer as a line of the golden file has it. */
struct coded_case {
    int columns, n[HEADS], heads, layer, by_chunk, bytes;
    bool keys;
    char want[5][TEXT]; // streams, sizes, CDFs, maxima, rows
};

static int read_case(struct coded_case *c, FILE *f)
{
    char side, cdf[16];

    *c = (struct coded_case){ 0 };
    if (fscanf(f, "%d %d", &c->columns, &c->n[c->heads++]) != 2)
        return 0;
    while (c->heads < HEADS && fscanf(f, ",%d", &c->n[c->heads]) == 1)
        c->heads++;
    int got = fscanf(f, "%d %c %15s %d %64s %64s %64s %64s %64s", &c->layer, &side, cdf, &c->bytes, c->want[0],
                     c->want[1], c->want[2], c->want[3], c->want[4]);
    cr_assert_eq(got, 9);
    c->keys = side == 'k';
    c->by_chunk = strcmp(cdf, "chunk") == 0;
    return 1;
}

/* As make.py makes them. */
static void fill_rows(float *x, uint32_t seed, int n, int columns)
{
    for (int i = 0; i < n * columns; i++) {
        int sum = -190;
        for (int k = 0; k < 3; k++) {
            seed = (seed * 1103515245u + 12345u) & 0x7fffffff;
            sum += (int)(seed >> 16 & 127);
        }
        x[i] = i / columns % 50 == 49 ? 0 : (float)ldexp(sum, (i % columns + 6) % 7 - 5);
    }
}

/* A side with its tensors. */
struct coded_side {
    struct coded_rows rows;
    struct kv_shape shape;
    double value[CONFIG_PARAMS];
    struct packed_part part[PART_MAX];
    int n_parts;
    size_t numbers;
    float *before; // the rows as they were
};

static const struct method_coder *cachegen(void)
{
    return method_find("cachegen", 8)->pack->coder;
}

static void side_init(struct coded_side *s, const struct coded_case *c)
{
    size_t sum = 0, at = 0;

    for (int g = 0; g < c->heads; g++)
        sum += (size_t)(c->n[g] * c->columns);
    *s = (struct coded_side){ .shape = { 32, c->heads, c->heads, c->columns, DTYPE_F32 }, .value = { c->by_chunk } };
    s->numbers = sum;
    s->before = malloc(sum * sizeof(float));
    s->rows = (struct coded_rows){ .shape = &s->shape,
                                   .value = s->value,
                                   .lengths = { c->layer, c->n },
                                   .keys = c->keys,
                                   .x = malloc(sum * sizeof(float)),
                                   .part = s->part };
    for (int g = 0; g < c->heads; at += (size_t)(c->n[g++] * c->columns))
        fill_rows(s->rows.x + at, 7 + (uint32_t)g, c->n[g], c->columns);
    memcpy(s->before, s->rows.x, sum * sizeof(float));
    s->n_parts = cachegen()->parts(s->value, &s->shape, &s->rows.lengths, s->part);
}

static void side_release(struct coded_side *s)
{
    for (int i = 0; i < s->n_parts; i++)
        free(s->part[i].at);
    free(s->rows.x);
    free(s->before);
}

static struct packed_part *parts_of(struct coded_side *s)
{
    return s->part + (s->rows.keys ? 0 : s->n_parts / 2);
}

static void expect_digest(const void *at, size_t n, const char *want, const char *what)
{
    char hex[DIGEST_HEX];
    struct err err;

    cr_assert_eq(digest_sha256(at, n, hex, &err), 0);
    cr_assert_str_eq(hex, want, "%s", what);
}

/* The exact information of the symbols under the CDFs in bits, from the streams decoded. */
static double information(struct coded_side *s)
{
    const struct packed_part *part = parts_of(s);
    const uint16_t *size = part[SIZES].at, *cdfs = part[CDFS].at;
    const uint8_t *at = part[STREAMS].at;
    int K2 = s->shape.head_dim, steps = (int)part[CDFS].dim[1];
    double bits = 0;

    for (int g = 0; g < s->shape.n_kv_heads; g++) {
        int n = s->rows.lengths.n[g];
        for (int64_t i = 0; i < K2 * cachegen_chunks(n); at += *size++, i++) {
            uint8_t symbol[CACHEGEN_CHUNK];
            struct coded_stream coded = { .in = { at, *size } };
            int64_t list = s->value[0] != 0 ? i : i % K2;
            int tokens = cachegen_chunk_tokens(i / K2, n);
            cr_assert(cachegen_cdf_read(&coded.cdf, cdfs + list * 2 * steps, steps));
            cr_assert_eq(arithmetic_decode(symbol, tokens, 1, &coded, 1), 0);
            for (int t = 0; t < tokens; t++)
                bits -= log2((coded.cdf.at[symbol[t] + 1] - coded.cdf.at[symbol[t]]) / 65536.);
        }
        cdfs += K2 * cachegen_cdf_lists(s->value[0] != 0 ? CACHEGEN_EACH_CHUNK : CACHEGEN_CONTEXT, n) * 2 * steps;
    }
    return bits;
}

Test(cachegen, codes_as_lmcache_and_torchac)
{
    FILE *f = fopen("tests/golden/cachegen/golden.txt", "r");
    struct coded_case c;
    struct err err;
    int n = 0;

    cr_assert(f);
    for (; read_case(&c, f); n++) {
        struct coded_side s;
        side_init(&s, &c);
        struct packed_part *part = parts_of(&s);
        int64_t most = part[STREAMS].dim[0];
        cr_assert_eq(cachegen()->encode(&s.rows, &err), 0);
        cr_assert(part[STREAMS].dim[0] == c.bytes && c.bytes < most, "%d: %lld", n, (long long)part[STREAMS].dim[0]);
        for (int i = 0; i < 4; i++)
            expect_digest(part[i].at, packed_part_bytes(&part[i]), c.want[i], part[i].name);
        cr_assert(cachegen()->check_part(part, STREAMS));
        cr_assert_eq(cachegen()->decode(&s.rows, &err), 0);
        expect_digest(s.rows.x, s.numbers * sizeof(float), c.want[4], "rows");
        double bytes = information(&s) / 8, streams = (double)packed_part_bytes(&part[SIZES]) / 2;
        double rest = (double)(packed_part_bytes(&part[SIZES]) + packed_part_bytes(&part[CDFS]));
        cr_assert_float_eq(bytes + 0.57 * streams + rest, c.bytes + rest, 0.005 * (c.bytes + rest), "%g %d", bytes,
                           c.bytes);
        side_release(&s);
    }
    fclose(f);
    cr_assert_eq(n, 30);
}

/* ---- bytes that are not right ------------------------------------------- */

/* One stream of 256 symbols of 31. */
static size_t make_stream(uint8_t *to, struct coded_stream *coded)
{
    int count[SYMBOLS_MAX] = { 0 };
    uint8_t symbol[CACHEGEN_CHUNK];

    for (int t = 0; t < CACHEGEN_CHUNK; t++)
        count[symbol[t] = (uint8_t)(t * t % 31)]++;
    cachegen_cdf_make(&coded->cdf, count, 15);
    size_t n = arithmetic_encode(to, symbol, CACHEGEN_CHUNK, &coded->cdf);
    coded->in = (struct stream){ to, n };
    return n;
}

/* A stream that is cut, too long, or of other symbols than were counted. */
Test(cachegen, refuses_streams_that_do_not_end_where_they_say)
{
    uint8_t bytes[2 * CACHEGEN_CHUNK + 1] = { 0 }, symbol[CACHEGEN_CHUNK];
    struct coded_stream coded;
    size_t n = make_stream(bytes, &coded);

    cr_assert_eq(arithmetic_decode(symbol, CACHEGEN_CHUNK, 1, &coded, 1), 0);
    for (size_t cut = 0; cut < n; cut++) {
        coded.in.n = cut;
        cr_assert_eq(arithmetic_decode(symbol, CACHEGEN_CHUNK, 1, &coded, 1), -1, "%zu of %zu", cut, n);
    }
    coded.in.n = n + 1;
    cr_assert_eq(arithmetic_decode(symbol, CACHEGEN_CHUNK, 1, &coded, 1), -1);
    memset(bytes, 0xff, sizeof(bytes)); // the share after the last symbol
    coded.in.n = n;
    cr_assert_eq(arithmetic_decode(symbol, CACHEGEN_CHUNK, 1, &coded, 1), -1);
}

Test(cachegen, refuses_bounds_that_do_not_ascend)
{
    uint16_t stored[30];
    uint8_t bytes[2 * CACHEGEN_CHUNK + 1];
    struct coded_stream coded;
    struct symbol_cdf cdf;

    make_stream(bytes, &coded);
    cachegen_cdf_write(stored, &coded.cdf);
    cr_assert(cachegen_cdf_read(&cdf, stored, 15));
    for (int i = 0; i < 30; i++) {
        uint16_t good = stored[i];
        stored[i] = i ? stored[i - 1] : 0;
        cr_assert_not(cachegen_cdf_read(&cdf, stored, 15), "%d", i);
        stored[i] = good;
    }
    stored[29] = 65503 + 31;
    cr_assert_not(cachegen_cdf_read(&cdf, stored, 15));
}

/* What evp_fetch_rows() says of a payload with one byte changed in a tensor of layer 1, whose checksum is not
 * compared. */
static int fetch_damaged(const char *name, size_t byte, int add, struct evp_error *error)
{
    struct evp_payload *p = calloc(1, sizeof(*p));
    struct evp_prefix prefix = { 0 };
    struct buf file = { 0 };
    struct payload head;
    struct err err;
    static float to[20 * K];

    cr_assert_eq(file_read(&file, "tests/fuzz/corpus/payload_rows/streams", 1 << 20, &err), 0);
    cr_assert_eq(payload_parse(&head, file.at, file.n, &err), 0);
    prefix.n_tokens = head.n_tokens;
    prefix.size = file.n;
    snprintf(prefix.config, sizeof(prefix.config), "%s", head.config);
    snprintf(prefix.token_digest, sizeof(prefix.token_digest), "%s", head.token_digest);
    file.at[(const char *)safetensors_find(&head.st, name)->at - file.at + (ptrdiff_t)byte] += (char)add;
    payload_close(&head);
    p->file = (struct prefix_file){ .blob = blob_of_bytes(file.at, file.n), .path = "x", .stats = stats_new() };
    cr_assert_eq(payload_begin(p, &prefix, &err), 0);
    const struct evp_rows rows = { .layer = 1, .n = 1, .type = EVICPRESS_F32, .verify = EVICPRESS_TRUST };
    int code = evp_fetch_rows(p, &rows, to, sizeof(to), error);
    evp_payload_close(p);
    buf_release(&file);
    return code;
}

Test(cachegen, damaged_tensors_of_a_payload_are_named)
{
    struct evp_error error;

    cr_assert_eq(fetch_damaged("layers.1.k_streams", 0, 0, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(fetch_damaged("layers.1.k_sizes", 0, 1, &error), EVICPRESS_DAMAGED);
    cr_assert_str_eq(error.text, "'x': the streams of the keys of layer 1 are damaged");
    cr_assert_eq(fetch_damaged("layers.1.k_cdfs", 1, 120, &error), EVICPRESS_DAMAGED);
    cr_assert_str_eq(error.text, "'x': the streams of the keys of layer 1 are damaged");
}

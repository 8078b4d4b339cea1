/* Attention of the cpu backend against the reference: shared, causal, suffix, ragged, empty, and across the places
 * where keys are split. */
#include "tests/kernels/compare.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

static const struct attn_case {
    int n_q, group, causal, n_keys, K;
} cases[] = {
    { 1, 1, -1, 1, 64 },      { 3, 3, -1, 40, 64 },     { 150, 3, -1, 1023, 64 },   { 150, 3, -1, 1024, 64 },
    { 6, 3, -1, 1025, 64 },   { 200, 4, -1, 2500, 32 }, { 12, 1, -1, 12, 32 },      { 193, 1, -1, 33, 128 },
    { 3, 3, 0, 1, 64 },       { 3, 3, 40, 41, 64 },     { 72, 3, 0, 24, 64 },       { 75, 3, 30, 55, 64 },
    { 32, 8, 5, 9, 16 },      { 600, 3, 0, 200, 64 },   { 300, 3, 1000, 1100, 64 }, { 33, 1, 1023, 1056, 64 },
    { 9, 3, 2100, 2103, 64 }, { 400, 200, 7, 9, 8 },    { 5, 5, -1, 0, 64 },        { 48, 3, 2040, 2056, 80 },
    { 31, 1, 3, 34, 16 },     { 191, 1, -1, 5, 16 },    { 192, 1, -1, 5, 16 },      { 2, 1, -1, 3, 1024 },
};
enum { N_CASES = sizeof(cases) / sizeof(*cases) };

static size_t n_out(const struct attn_case *c)
{
    return (size_t)c->n_q * (size_t)(c->K + 5);
}

/* What a case works on; q and out have rows further apart than they are long. */
struct operands {
    float *q, *k, *v, *out, *lse;
};

static struct operands operands_of(struct backend *be, const struct attn_case *c)
{
    size_t n_q = (size_t)c->n_q, n_kv = (size_t)c->n_keys * (size_t)c->K;
    struct operands o = { numbers(be, "q", n_q * (size_t)(c->K + 4)), numbers(be, "k", n_kv), numbers(be, "v", n_kv),
                          numbers(be, "out", n_out(c)), space(be, n_q) };
    return o;
}

static struct attn_item item_of(const struct attn_case *c, const struct operands *o)
{
    return (struct attn_item){ .q = o->q,
                               .out = o->out,
                               .lse = o->lse,
                               .n_q = c->n_q,
                               .q_pitch = c->K + 4,
                               .out_pitch = c->K + 5,
                               .group = c->group,
                               .causal = c->causal,
                               .kv = { o->k, o->v, c->n_keys } };
}

static void inputs_free(struct backend *be, struct operands *o)
{
    be->free(be, o->q);
    be->free(be, o->k);
    be->free(be, o->v);
}

Test(kernels, attend)
{
    struct backends b = backends_open();
    char what[96];

    for (int i = 0; i < N_CASES; i++) {
        const struct attn_case *c = &cases[i];
        struct operands want = operands_of(b.reference, c), got = operands_of(b.cpu, c);
        struct attn_item on_reference = item_of(c, &want), on_cpu = item_of(c, &got);
        snprintf(what, sizeof(what), "attend: %d rows, group %d, causal %d, %d keys of %d", c->n_q, c->group, c->causal,
                 c->n_keys, c->K);
        b.reference->attend(b.reference, &on_reference, 1, c->K, 0.3f);
        b.cpu->attend(b.cpu, &on_cpu, 1, c->K, 0.3f);
        same_floats(&b, (struct results){ want.out, got.out, n_out(c) }, (struct tolerance){ 2e-5, 2e-5 }, what);
        same_floats(&b, (struct results){ want.lse, got.lse, (size_t)c->n_q }, (struct tolerance){ 2e-5, 2e-6 }, what);
        inputs_free(b.reference, &want);
        inputs_free(b.cpu, &got);
    }
    backends_close(&b);
}

/* All cases of one head size in one call give the bits that each gives alone, and so do the rows of a shared item. */
Test(kernels, attend_items_do_not_know_each_other)
{
    struct backends b = backends_open();
    struct err err = { 0 };
    struct operands alone[N_CASES], together[N_CASES];
    struct attn_item item[N_CASES];
    int which[N_CASES], n = 0;

    for (int i = 0; i < N_CASES; i++) {
        if (cases[i].K != 64)
            continue;
        alone[n] = operands_of(b.cpu, &cases[i]);
        together[n] = operands_of(b.cpu, &cases[i]);
        struct attn_item one = item_of(&cases[i], &alone[n]);
        item[n] = item_of(&cases[i], &together[n]);
        b.cpu->attend(b.cpu, &one, 1, 64, 0.3f);
        which[n++] = i;
    }
    b.cpu->attend(b.cpu, item, n, 64, 0.3f);
    cr_assert_eq(b.cpu->sync(b.cpu, &err), 0);
    for (int i = 0; i < n; i++) {
        same_bits(alone[i].out, together[i].out, n_out(&cases[which[i]]), "attention of one item");
        inputs_free(b.cpu, &alone[i]);
        inputs_free(b.cpu, &together[i]);
        b.cpu->free(b.cpu, alone[i].out);
        b.cpu->free(b.cpu, alone[i].lse);
        b.cpu->free(b.cpu, together[i].out);
        b.cpu->free(b.cpu, together[i].lse);
    }
    backends_close(&b);
}

Test(kernels, attend_shared_rows_do_not_know_each_other)
{
    struct backends b = backends_open();
    struct err err = { 0 };
    const struct attn_case all = { 150, 3, -1, 2300, 64 };
    struct operands o = operands_of(b.cpu, &all);
    struct attn_item item = item_of(&all, &o);
    float *out = space(b.cpu, 3 * 64), *lse = space(b.cpu, 3);

    b.cpu->attend(b.cpu, &item, 1, 64, 0.3f);
    for (int row = 0; row < 150; row += 21) { // the three rows of one sequence
        struct attn_item one = item;
        one.n_q = 3, one.q = o.q + row * item.q_pitch, one.out = out, one.out_pitch = 64, one.lse = lse;
        b.cpu->attend(b.cpu, &one, 1, 64, 0.3f);
        cr_assert_eq(b.cpu->sync(b.cpu, &err), 0);
        for (int r = 0; r < 3; r++)
            same_bits(out + r * 64, o.out + (row + r) * item.out_pitch, 64, "attention of one sequence");
        same_bits(lse, o.lse + row, 3, "lse of one sequence");
    }
    inputs_free(b.cpu, &o);
    b.cpu->free(b.cpu, o.out);
    b.cpu->free(b.cpu, o.lse);
    b.cpu->free(b.cpu, out);
    b.cpu->free(b.cpu, lse);
    backends_close(&b);
}

static float *merge_on(struct backend *be, int n_parts)
{
    enum { T = 11, G = 3, GROUP = 3, K = 64, ROWS = T * G * GROUP };
    float *a = numbers(be, "a", ROWS * K), *c = numbers(be, "b", ROWS * K), *out = space(be, ROWS * K);
    float *la = numbers(be, "la", ROWS), *lc = numbers(be, "lb", ROWS);
    la[0] = -INFINITY, lc[5] = -INFINITY, la[7] = 80, lc[8] = 1000;
    be->merge(be, &(struct merge_job){ .out = mat_of(out, T, G * GROUP * K),
                                       .part = { a, c },
                                       .lse = { la, lc },
                                       .n_parts = n_parts,
                                       .n_kv_heads = G,
                                       .head_dim = K });
    be->free(be, a);
    be->free(be, c);
    be->free(be, la);
    be->free(be, lc);
    return out;
}

Test(kernels, merge)
{
    struct backends b = backends_open();

    same_floats(&b, (struct results){ merge_on(b.reference, 1), merge_on(b.cpu, 1), 11 * 9 * 64 },
                (struct tolerance){ 0, 0 }, "merge of one");
    same_floats(&b, (struct results){ merge_on(b.reference, 2), merge_on(b.cpu, 2), 11 * 9 * 64 },
                (struct tolerance){ 1e-6, 1e-6 }, "merge of two");
    backends_close(&b);
}

Test(backend, is_opened_by_name)
{
    struct err err = { 0 };

    struct backend *be = backend_open("auto", 0, &err);
    cr_assert(be, "%s", err.msg);
    cr_assert_str_eq(be->name, "cpu");
    struct device_memory m = be->memory(be);
    cr_assert(m.free > 0 && m.free <= m.total);
    be->close(be);
    cr_assert_null(backend_open("cuda", 0, &err));
    cr_assert_eq(err.code, ERR_DEVICE);
    cr_assert_null(backend_open("tpu", 0, &err));
    cr_assert_eq(err.code, ERR_DEVICE);
}

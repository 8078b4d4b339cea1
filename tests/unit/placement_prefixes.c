/* Contexts that begin with each other: a case by hand, and random families, planned, written, read and verified. */
#include "tests/unit/placement_night.h"

#include "base/rng.h"
#include "placement/placement_internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(placement_prefixes, .init = night_open, .fini = night_close);

enum { V = 3, T = 2, MAX_C = 16, MAX_CHUNKS = 8, HEX = 64 };

static char config[V][32] = { "none", "keydiff:drop=0.5", "kivi:bits=2" };

struct family {
    int n;
    char id[MAX_C][16], digest[MAX_C][HEX + 1], chain[MAX_C][MAX_CHUNKS * HEX + 1];
    int chunks[MAX_C], rest[MAX_C]; // rest: tokens after the whole chunks
};

/* The next context begins with the first `shared` chunks of context `of`, and has others after them. */
static void begin_like(struct family *f, int of, int shared, int chunks, int rest)
{
    int i = f->n++;

    f->chunks[i] = chunks;
    f->rest[i] = rest;
    snprintf(f->id[i], sizeof(f->id[i]), "c%02d", i);
    snprintf(f->digest[i], sizeof(f->digest[i]), "%064x", i + 1);
    for (int k = 0; k < chunks; k++) {
        char one[HEX + 1];
        snprintf(one, sizeof(one), "%064x", 1000 * (i + 1) + k);
        memcpy(f->chain[i] + k * HEX, k < shared ? f->chain[of] + k * HEX : one, HEX);
    }
    f->chain[i][chunks * HEX] = '\0';
}

/* A second for 100 tokens, 10 bytes each; variants take 10, 5 and 2 and have qualities 1, .9, .8; rates 1e4 and 1e3. */
static void make_input(struct placement_input *in, const struct family *f, enum manifest_sharing sharing)
{
    const struct placement_files files = { .table = "t" };
    static const int64_t per_token[V] = { 10, 5, 2 };
    struct table t = { 0 };
    struct err err;

    cr_assert(!table_alloc(&t, f->n, V, 0, &err) && !table_alloc_scores(&t, 0, &err), "%s", err.msg);
    for (int v = 0; v < V; v++)
        t.config_name[v] = config[v];
    for (int i = 0; i < f->n; i++) {
        t.context_id[i] = f->id[i];
        t.context_token_digest[i] = f->digest[i];
        t.context_prefix_digests[i] = f->chain[i];
        t.n_tokens[i] = f->chunks[i] * 256 + f->rest[i];
        t.kv_bytes[i] = 10 * t.n_tokens[i];
        t.prefill_s[i] = (double)t.n_tokens[i] / 100;
        t.question_s[i] = 0.02;
        cr_assert_neq(map_add(&t.ids, f->id[i], strlen(f->id[i]), NULL), MAP_NOMEM);
        for (int v = 0; v < V; v++) {
            t.cell_bytes[table_cell(&t, i, v)] = per_token[v] * t.n_tokens[i];
            t.decompress_s[table_cell(&t, i, v)] = 0;
            t.quality_train[table_cell(&t, i, v)] = 1 - 0.1 * v;
        }
    }
    *in = (struct placement_input){ .alpha = 1, .max_move = INT64_MAX, .kind = QUALITY_RAW, .sharing = sharing };
    in->tiers = (struct tiers){ calloc(T, sizeof(struct tier)), T };
    for (int k = 0; k < T; k++)
        in->tiers.at[k] = (struct tier){
            .kind = TIER_FILE, .capacity = 1, .read_bytes_per_s = k ? 1e3 : 1e4, .write_bytes_per_s = 1e6
        };
    for (int k = 0; k < T; k++) {
        snprintf(in->tiers.at[k].name, TIER_NAME, "t%d", k);
        in->tiers.at[k].uri = strdup("/tmp/x");
    }
    cr_assert_eq(placement_input_take(in, &t, &files, &err), 0, "%s", err.msg);
    for (int i = 0; i < f->n; i++)
        in->frequency[i] = 1;
}

static void set_capacity(struct placement_input *in, int tier, int64_t bytes)
{
    in->capacity[tier] = in->tiers.at[tier].capacity = bytes;
}

/* Writes the plan, reads it, and verifies it. Returns the rows of the manifest. */
static struct manifest write_and_verify(struct placement_input *in, const struct placement_plan *p,
                                        struct placement_proof *proof)
{
    struct manifest m;
    struct err err;

    night_manifest(p, manifest_path);
    cr_assert_eq(manifest_read(&m, manifest_path, &err), 0, "%s", err.msg);
    cr_assert_eq(placement_verify(in, &m, proof, &err), 0, "%s", err.msg);
    return m;
}

/* b begins with a: 512 and 1024 tokens, 5.12 and 10.24 seconds. There is space for a alone, uncompressed. Reading its
 * 5120 bytes takes .512 s; b computes the other 5.12 s. */
Test(placement_prefixes, the_rest_is_computed)
{
    struct family f = { .n = 0 };
    struct placement_input in;
    struct placement_plan p;
    struct placement_proof proof;
    struct placement_bill bill;
    struct err err;

    begin_like(&f, 0, 0, 2, 0);
    begin_like(&f, 0, 2, 4, 0);
    make_input(&in, &f, SHARING_CONTEXTS);
    cr_assert_eq(in.prefixes.n, 2);
    in.frequency[0] = 0.001; /* hardly used itself */
    in.alpha = 100;
    set_capacity(&in, 0, 5200);
    set_capacity(&in, 1, 0);
    night_solve(&p, &in);
    struct manifest m = write_and_verify(&in, &p, &proof);
    cr_expect(m.sharing == SHARING_CONTEXTS);
    cr_expect_eq(m.at[0].tier, 0);
    cr_expect_str_eq(m.at[0].config, "none");
    cr_expect_eq(m.at[1].tier, -1);
    cr_expect_float_eq(m.at[1].ttft_s, 5.12 + 0.512 + 0.02, 1e-9);
    cr_expect_float_eq(m.at[1].utility, 100 - 5.12 - 0.512 - 0.02, 1e-9);
    cr_assert_eq(placement_bill(&p, &bill, &err), 0);
    cr_expect(bill.n_served == 1);
    cr_expect_float_eq(bill.uses_served, 1, 1e-12);
    cr_expect_float_eq(bill.saves_s, 0.001 * (5.12 - 0.512) + 5.12 - 0.512, 1e-9);
    m.at[1].ttft_s -= 1e-3;
    cr_expect_eq(placement_verify(&in, &m, &proof, &err), ERR_FORMAT);
    m.at[1].ttft_s += 1e-3;
    m.at[1].utility += 1e-3;
    cr_expect_eq(placement_verify(&in, &m, &proof, &err), ERR_FORMAT);
    m.at[1].utility -= 1e-3;
    m.upper_bound -= 1e-3;
    cr_expect_eq(placement_verify(&in, &m, &proof, &err), ERR_FORMAT);
    manifest_release(&m);
    plan_release(&p.plan);
    placement_input_release(&in);
}

/* A compressed beginning costs the quality of the context that it serves; a floor of one above holds for it, too. */
Test(placement_prefixes, quality_and_floors_of_a_beginning)
{
    struct family f = { .n = 0 };
    struct placement_input in;
    struct placement_plan p;
    struct placement_proof proof;

    begin_like(&f, 0, 0, 2, 0);
    begin_like(&f, 0, 2, 4, 0);
    for (int floor = 0; floor < 2; floor++) {
        make_input(&in, &f, SHARING_CONTEXTS);
        if (floor) {
            placement_prefixes_release(&in.prefixes);
            in.rule[1].min_quality = 0.95;
            struct err err;
            cr_assert_eq(placement_find_prefixes(&in, &err), 0);
        }
        in.alpha = 3;
        in.frequency[0] = 2;
        set_capacity(&in, 0, 2600);
        set_capacity(&in, 1, 0);
        night_solve(&p, &in);
        struct manifest m = write_and_verify(&in, &p, &proof);
        if (!floor) {
            cr_expect_str_eq(m.at[0].config, config[1]);
            cr_expect_float_eq(m.at[1].quality, 0.9, 1e-12);
            cr_expect_float_eq(m.at[1].ttft_s, 5.12 + 0.256 + 0.02, 1e-9);
        } else
            cr_expect(m.at[0].tier == -1 && m.at[1].tier == -1);
        manifest_release(&m);
        plan_release(&p.plan);
        placement_input_release(&in);
    }
}

/* Who begins with whom: not a context that ends within the same chunk as another, nor one without a whole chunk. */
Test(placement_prefixes, relatives)
{
    struct family f = { .n = 0 };
    struct placement_input in;

    begin_like(&f, 0, 0, 3, 10);
    begin_like(&f, 0, 3, 3, 20);
    begin_like(&f, 0, 3, 5, 0);
    begin_like(&f, 2, 4, 6, 0);
    begin_like(&f, 0, 0, 0, 100);
    begin_like(&f, 0, 1, 4, 0);
    make_input(&in, &f, SHARING_CONTEXTS);
    cr_expect_eq(in.prefixes.n, 0, "nobody begins another for sure");
    placement_input_release(&in);
    make_input(&in, &f, SHARING_CHUNKS);
    const struct placement_prefixes *p = &in.prefixes;
    /* chunk 1: then 5, and chunks 3: then 0, 1, and chunks 4: then 2 and 3 */
    int64_t tokens[] = { 256, 768, 768, 768, 1024, 1280, 1536, 1024, 0 };
    int row[] = { -1, -1, 0, 1, -1, 2, 3, 5, 4 }, parent[] = { -1, 0, 1, 1, 1, 4, 4, 0, -1 };
    int end[] = { 8, 7, 3, 4, 7, 6, 7, 8, 9 };
    cr_assert_eq(p->n, 9);
    for (int v = 0; v < 9; v++) {
        cr_expect(p->chunk_tokens[v] == tokens[v] && p->row[v] == row[v], "node %d: row %d", v, p->row[v]);
        cr_expect(p->parent[v] == parent[v] && p->end[v] == end[v], "node %d: %d %d", v, p->parent[v], p->end[v]);
    }
    placement_input_release(&in);
}

static void draw_family(struct family *f, struct rng *r)
{
    int n = 2 + (int)rng_below(r, MAX_C - 2);

    for (int i = 0; i < n; i++) {
        int of = i > 0 ? (int)rng_below(r, (uint64_t)i) : 0;
        int chunks = (int)rng_below(r, MAX_CHUNKS + 1), most = i > 0 && f->chunks[of] < chunks ? f->chunks[of] : chunks;
        int shared = i > 0 ? rng_below(r, 2) ? most : (int)rng_below(r, (uint64_t)most + 1) : 0;
        begin_like(f, of, shared, chunks, chunks == 0 || rng_below(r, 2) ? 1 + (int)rng_below(r, 255) : 0);
    }
}

Test(placement_prefixes, every_plan_verifies)
{
    struct rng r = rng_new(5);
    double gap = 0, gain = 0;
    int related = 0, refused = 0;

    for (int k = 0; k < 80; k++) {
        struct family *f = calloc(1, sizeof(*f));
        struct placement_input in;
        struct placement_plan p;
        struct placement_proof proof;
        draw_family(f, &r);
        make_input(&in, f, k % 2 ? SHARING_CHUNKS : SHARING_CONTEXTS);
        in.alpha = 30 * rng_unit(&r);
        set_capacity(&in, 0, (int64_t)rng_below(&r, 20000));
        set_capacity(&in, 1, rng_below(&r, 4) ? (int64_t)rng_below(&r, 60000) : INT64_MAX);
        for (int i = 0; i < f->n; i++) {
            in.frequency[i] = (double)rng_below(&r, 10);
            in.pin[i] = rng_below(&r, 15) ? PIN_NONE : (int)rng_below(&r, 3) - 1; /* not stored, or on a tier */
        }
        struct err err;
        int code = placement_solve(&p, &in, PLAN_OPTIMAL, &(struct plan_effort){ 0 }, &err);
        cr_assert(!code || strstr(err.msg, "do not fit there together") || strstr(err.msg, "where no variant fits"),
                  "%s", err.msg);
        if (code) {
            placement_input_release(&in);
            free(f);
            refused++;
            continue;
        }
        struct manifest m = write_and_verify(&in, &p, &proof);
        cr_assert(m.upper_bound >= proof.bound - 1e-9 * fabs(proof.bound), "%d", k);
        cr_assert(in.sharing == SHARING_CHUNKS || in.prefixes.n == 0 ||
                      m.upper_bound <= proof.bound + 1e-9 * fabs(proof.bound),
                  "%d: %.12g, %.12g", k, m.upper_bound, proof.bound);
        related += in.prefixes.n > 0;
        gap += m.upper_bound - m.objective;
        gain += m.upper_bound - m.total[1 + BASELINE_RECOMPUTE].utility;
        for (int i = 0; i < m.n; i++)
            cr_assert(m.at[i].ttft_s > 0, "%d: %s", k, m.at[i].id);
        manifest_release(&m);
        plan_release(&p.plan);
        placement_input_release(&in);
        free(f);
    }
    cr_expect(related > 30 && refused < 30, "%d, %d", related, refused);
    cr_expect(gap < 0.05 * gain, "%g of %g", gap, gain);
}

/* What evp-plan --verify sees: a good manifest is changed in one place after another, and the failure names each. */
#include "tests/unit/placement_night.h"

#include <criterion/criterion.h>

TestSuite(placement_verify, .init = night_open, .fini = night_close);

struct night {
    struct placement_input in;
    struct manifest m;
};

/* A plan with variants, as it is read back; c1 is on dram, c0 and c2 are on ssd. */
static void read_night(struct night *n)
{
    struct placement_files f = night_files();
    struct placement_plan p;
    struct err err;

    night_read(&n->in, &f);
    n->in.online = true;
    night_solve(&p, &n->in);
    night_manifest(&p, manifest_path);
    plan_release(&p.plan);
    placement_input_release(&n->in);
    n->in = (struct placement_input){ 0 };
    cr_assert_eq(manifest_read(&n->m, manifest_path, &err), 0, "%s", err.msg);
    cr_assert_eq(placement_input_as(&n->in, &n->m, &f, &err), 0, "%s", err.msg);
}

static void see(const struct night *n, const char *says)
{
    struct placement_proof proof;
    struct err err;
    int code = placement_verify(&n->in, &n->m, &proof, &err);

    cr_assert_eq(code, says ? ERR_FORMAT : 0, "%s", says ? says : err.msg);
    if (says)
        cr_assert(strstr(err.msg, says), "'%s' does not say '%s'", err.msg, says);
}

/* Each is one change to a good manifest or to what it is verified against; undone again. */
#define SEE(place, type, value, says)                                                                                  \
    do {                                                                                                               \
        type was = place;                                                                                              \
        place = value;                                                                                                 \
        see(&n, says);                                                                                                 \
        place = was;                                                                                                   \
        see(&n, NULL);                                                                                                 \
    } while (0)

Test(placement_verify, sees_every_wrong_row)
{
    struct night n;

    read_night(&n);
    struct placement *p = &n.m.at[1];
    cr_assert(p->tier == DRAM && p->variants);
    see(&n, NULL);
    SEE(p->id, const char *, "c9", "context 'c9' is not in the table");
    SEE(p->config, const char *, "kivi:bits=3", "context 'c1': the table has no config 'kivi:bits=3'");
    SEE(p->token_digest, const char *, n.m.at[0].token_digest, "context 'c1': its token digest differs");
    SEE(p->bytes, int64_t, p->bytes + 1, "context 'c1': bytes is 100001 in the manifest, 100000 by the table");
    SEE(p->quality, double, 0.91, "context 'c1': quality is 0.91 in the manifest, 0.9 by the table");
    SEE(p->ttft_s, double, p->ttft_s + 1e-6, "context 'c1': TTFT is");
    SEE(p->utility, double, p->utility + 1e-6, "context 'c1': utility is");
    SEE(p->tier, int, SSD, "context 'c1': TTFT is");
    SEE(n.in.rule[1].min_quality, double, 0.95, "context 'c1': quality 0.9 is below its floor");
    SEE(n.in.min_quality, double, 0.91, "quality 0.9 is below its floor");
    double worst[] = { 1, 1, 1, 1, 0.5, 1, 1, 1, 1 }; /* of c1 as keydiff */
    n.in.worst = worst;
    SEE(n.in.min_quality_worst, double, 0.5, NULL);
    SEE(n.in.min_quality_worst, double, 0.51,
        "context 'c1': the quality of its worst question is below --min-quality-worst=0.51");
    n.in.worst = NULL;
    SEE(n.in.slo_weight, double, 1, "context 'c0': utility is");
    SEE(n.in.tiers.at[DRAM].part_bytes_per_s, double, 5e8, "context 'c1': TTFT is");
    SEE(n.in.pin[1], int, SSD, "context 'c1' is not on the tier it is pinned to");
    SEE(n.in.pin[1], int, PLAN_RECOMPUTE, "context 'c1' is not on the tier it is pinned to");
    SEE(n.m.n, int, 2, "the manifest has 2 of the table's 3 contexts");
    placement_input_release(&n.in);
    manifest_release(&n.m);
}

/* A context that the table does not have may be evicted; a variant must be the table's. */
Test(placement_verify, sees_every_wrong_variant)
{
    struct night n;

    read_night(&n);
    struct placement *p = &n.m.at[1];
    struct variants variants = *p->variants;
    struct variant_info variant[VARIANTS_MAX];
    memcpy(variant, variants.at, (size_t)variants.n * sizeof(*variant));
    variants.at = variant;
    p->variants = &variants;
    see(&n, NULL);
    SEE(variants.prefill_s, double, 3, "context 'c1': prefill_s is 3 in the manifest, 2 by the table");
    SEE(variants.question_s, double, 1, "context 'c1': question_s is 1");
    SEE(variants.prefill_sd_s, double, 1, "context 'c1': prefill_sd_s is 1");
    SEE(variants.question_sd_s, double, 1, "context 'c1': question_sd_s is 1");
    SEE(variant[0].config, const char *, "kivi:bits=3", "context 'c1': the table has no config 'kivi:bits=3'");
    SEE(variant[0].bytes, int64_t, 1, "context 'c1': a variant's bytes is 1 in the manifest, 40000 by the table");
    SEE(variant[0].quality, double, 0.5, "context 'c1': a variant's quality is 0.5");
    SEE(variant[0].decompress_s, double, 0.5, "context 'c1': a variant's decompress_s is 0.5");
    struct placement gone = manifest_eviction(p);
    gone.id = "gone";
    struct err err;
    cr_assert_eq(manifest_add(&n.m, &gone, &err), 0, "%s", err.msg);
    see(&n, NULL);
    placement_input_release(&n.in);
    manifest_release(&n.m);
}

/* The header: at and beside what the rows sum up to. */
Test(placement_verify, sees_every_wrong_sum)
{
    struct night n;

    read_night(&n);
    SEE(n.in.tiers.at[SSD].capacity, int64_t, 299999, "tier 'ssd' holds 300000 of 299999 bytes");
    SEE(n.in.tiers.at[DRAM].capacity, int64_t, 99999, "tier 'dram' holds 100000 of 99999 bytes");
    SEE(n.in.max_move, int64_t, 399999, "the plan writes 400000 bytes, but only 399999 are allowed");
    SEE(n.in.max_move, int64_t, 400000, NULL);
    SEE(n.m.objective, double, n.m.objective + 1e-6, "total utility is 5.54590");
    SEE(n.m.upper_bound, double, n.m.upper_bound - 1e-6, "the manifest says that no plan exceeds 5.65");
    SEE(n.m.upper_bound, double, n.m.upper_bound + 1, NULL);
    SEE(n.m.price[SSD], double, 0, "but its prices prove only");
    SEE(n.in.move_cost, double, 1e-9, "total utility is");
    SEE(n.in.pack_weight, double, 0.1, "total utility is");
    placement_input_release(&n.in);
    manifest_release(&n.m);
}

/* Live plans of the installed library: one behaviour per test, limits, and what they refuse. */
#include "tests/unit/evp_world.h"
#include "tests/unit/lie.h"

#include "loader/libevicpress/evicpress_plan.h"

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

TestSuite(evp_plan_single, .init = world_open_files, .fini = world_remove_files);

/* ---- single behaviours ---------------------------------------------------------------- */

/* A plan of one context on a tier of 100 bytes, where it takes 80. */
static struct evp_plan *small(struct world *w)
{
    struct plan_placement placement = { 0, 0 };
    struct plan plan = { .placement = &placement, .n_contexts = 1 };
    struct evp_plan *opened;
    struct rng r = rng_new(1);

    world_draw(w, &r, 1);
    w->tiers.n = 1;
    w->tier[0] = (struct tier){ .name = "ram",
                                .kind = TIER_DRAM,
                                .uri = w->tier[0].uri,
                                .capacity = 100,
                                .read_bytes_per_s = 1e9,
                                .write_bytes_per_s = 1e9 };
    w->alpha = 1;
    w->frequency[0] = 1;
    w->variant[0][0] = (struct variant_info){ "none", 80, 1, (double)NAN };
    world_write(w, &plan);
    cr_assert_eq(evp_plan_open(&opened, world_path, NULL), EVICPRESS_OK);
    return opened;
}

/* The present variant keeps its number among the new ones; without it the context must go elsewhere. */
Test(evp_plan_single, other_variants_of_a_context_that_is_placed)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_operations ops;
    struct evp_variant variant[3] = { { .config = "kivi:bits=2", .bytes = 10, .quality = 0.1 },
                                      { .config = "kivi:bits=4", .bytes = 20, .quality = 0.2 },
                                      { .config = "none", .bytes = 80, .quality = 1 } };
    struct evp_update u = { "context/0", 2, variant, 3, { 0 } };

    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVICPRESS_OK);
    cr_assert_eq(ops.n, 0);
    variant[2].bytes = 90;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVICPRESS_OK);
    cr_assert(ops.n == 1 && ops.at[0].kind == EVICPRESS_RECOMPRESS && ops.at[0].from_bytes == 80 &&
              ops.at[0].to_bytes == 90);
    evp_operations_release(&ops);
    u.n_variants = 2;
    w.prefill_s[0] = 0;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, NULL), EVICPRESS_OK);
    cr_assert_eq(ops.n, 1);
    cr_assert_str_eq(ops.at[0].from_config, "none");
    cr_assert_str_neq(ops.at[0].to_config, ops.at[0].to_bytes ? "none" : "kivi:bits=2");
    evp_operations_release(&ops);
    u.n_variants = 0;
    cr_assert_eq(evp_plan_update(plan, &u, NULL, NULL), EVICPRESS_OK);
    cr_assert_eq(evp_plan_remove(plan, "context/0", &ops, NULL), EVICPRESS_OK);
    cr_assert_eq(ops.n, 0);
    evp_operations_release(&ops);
    evp_plan_close(plan);
}

Test(evp_plan_single, ids_come_and_go_by_the_thousand)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_plan_state state;
    char id[32];
    struct evp_context c = { .id = id, .token_digest = world_digest(1), .n_tokens = 1, .prefill_s = 1 };

    for (int i = 0; i < 20000; i++) {
        if (i % 5000 == 0) {
            snprintf(id, sizeof(id), "regular/%d", i);
            cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVICPRESS_OK);
        }
        snprintf(id, sizeof(id), "passer-by/%d", i);
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVICPRESS_OK);
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, NULL), EVICPRESS_EXISTS);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVICPRESS_OK);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVICPRESS_UNKNOWN);
    }
    for (int i = 15000; i >= 0; i -= 5000) {
        snprintf(id, sizeof(id), "regular/%d", i);
        cr_assert_eq(evp_plan_remove(plan, id, NULL, NULL), EVICPRESS_OK, "%s", id);
    }
    cr_assert_eq(evp_plan_remove(plan, "context/0", NULL, NULL), EVICPRESS_OK);
    cr_assert_eq(evp_plan_status(plan, &state, NULL), EVICPRESS_OK);
    cr_assert(state.n_contexts == 0 && state.tier[0].free_bytes == 100 && state.tier[0].capacity == 100);
    cr_assert_str_eq(state.tier[0].name, "ram");
    evp_plan_close(plan);
}

/* A context that is pinned stays, whatever other contexts come. */
Test(evp_plan_single, pins_and_floors_hold)
{
    struct world w;
    struct buf text = { 0 }, pinned = { 0 };
    struct evp_plan *plan = small(&w);
    struct evp_variant variant[2] = { { .config = "none", .bytes = 100, .quality = 1 },
                                      { .config = "kivi:bits=2", .bytes = 5, .quality = 0.5 } };
    struct evp_context c = { .id = "x",
                             .token_digest = world_digest(1),
                             .n_tokens = 1,
                             .frequency = 100,
                             .prefill_s = 99,
                             .variant = variant,
                             .n_variants = 1 };
    struct evp_operations ops;
    struct evp_error error;
    struct err err;

    cr_assert_eq(evp_plan_admit(plan, &c, &ops, NULL), EVICPRESS_OK);
    cr_assert(ops.n == 2 && ops.at[0].kind != EVICPRESS_INSERT && ops.at[1].kind == EVICPRESS_INSERT);
    evp_operations_release(&ops);
    evp_plan_close(plan);
    cr_assert_eq(file_read(&text, world_path, 1 << 20, &err), 0);
    char *at = strstr(text.at, "\"forms\"");
    buf_printf(&pinned, "%.*s\"pin\":\"ram\",%s", (int)(at - text.at), text.at, at);
    at = strstr(pinned.at, "\"previous\"");
    buf_clear(&text);
    buf_printf(&text, "%.*s\"min_quality\":0.75,%s", (int)(at - pinned.at), pinned.at, at);
    cr_assert_eq(file_write(world_path, text.at, text.n, &err), 0);
    cr_assert_eq(evp_plan_open(&plan, world_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_plan_admit(plan, &c, &ops, NULL), EVICPRESS_OK);
    cr_assert_eq(ops.n, 0);
    evp_operations_release(&ops);
    c.id = "y";
    c.n_variants = 2;
    cr_assert_eq(evp_plan_admit(plan, &c, &ops, &error), EVICPRESS_ARGUMENT);
    cr_assert(strstr(error.text, "variant 2: field 'quality' is below min_quality"), "%s", error.text);
    variant[0].bytes = 101;
    variant[1].quality = 0.8;
    struct evp_update u = { .id = "context/0", .frequency = 1, .variant = variant, .n_variants = 1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_ARGUMENT);
    cr_assert(strstr(error.text, "no variant fits tier 'ram', which the context is pinned to"), "%s", error.text);
    cr_assert_eq(evp_plan_lost(plan, "context/0", &error), EVICPRESS_ARGUMENT);
    cr_assert_str_eq(error.text, "context 'context/0' is pinned to tier 'ram': put its payload there again");
    cr_assert_eq(evp_plan_tier_lost(plan, "ram", &error), EVICPRESS_OK, "%s", error.text);
    cr_assert(evp_plan_lost(plan, "nobody", &error) == EVICPRESS_UNKNOWN &&
              evp_plan_tier_lost(plan, "nowhere", &error) == EVICPRESS_UNKNOWN &&
              evp_plan_lost(plan, NULL, &error) == EVICPRESS_ARGUMENT &&
              evp_plan_tier_lost(plan, NULL, &error) == EVICPRESS_ARGUMENT);
    variant[0].bytes = 100;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_OK);
    cr_assert(ops.n == 1 && ops.at[0].to_bytes == 100);
    evp_operations_release(&ops);
    cr_assert_eq(evp_plan_save(plan, world_other_path, &error), EVICPRESS_OK);
    buf_clear(&text);
    cr_assert_eq(file_read(&text, world_other_path, 1 << 20, &err), 0);
    cr_assert(strstr(text.at, "\"pin\":\"ram\"") && strstr(text.at, "\"min_quality\":0.75"));
    evp_plan_close(plan);
    buf_release(&text);
    buf_release(&pinned);
}

/* 127 variants are taken, 128 refused. When none of 127 new ones is the variant stored now, that one keeps its number
 * as a hole, and the planner needs one number more. */
Test(evp_plan_single, as_many_variants_as_there_may_be)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_variant variant[128];
    char config[128][32];
    struct evp_context c = { .id = "x", .token_digest = world_digest(1), .n_tokens = INT32_MAX, .variant = variant };
    struct evp_update u = { .id = "context/0", .frequency = 1, .variant = variant };
    struct evp_operations ops;
    struct evp_error error;

    for (int i = 0; i < 128; i++) {
        snprintf(config[i], sizeof(config[i]), "knorm:drop=0.%03d", i);
        variant[i] = (struct evp_variant){ .config = config[i], .bytes = 20, .quality = i == 126 ? 1 : 0.5 };
    }
    u.n_variants = 127;
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_OK);
    cr_assert(ops.n == 1 && ops.at[0].kind == EVICPRESS_RECOMPRESS, "only the last one is as good as the one stored");
    cr_assert_str_eq(ops.at[0].to_config, "knorm:drop=0.126");
    evp_operations_release(&ops);
    for (size_t n = 126; n <= 128; n++) {
        int code = n <= 127 ? EVICPRESS_OK : EVICPRESS_ARGUMENT;
        c.n_variants = u.n_variants = n;
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, &error), code);
        cr_assert(!code || strstr(error.text, "n_variants is above 127"), "%s", error.text);
        cr_assert(code || evp_plan_remove(plan, "x", NULL, NULL) == EVICPRESS_OK);
        cr_assert_eq(evp_plan_update(plan, &u, NULL, &error), code);
    }
    cr_assert_eq(evp_plan_save(plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    evp_plan_close(plan);
    cr_assert_eq(evp_plan_open(&plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    evp_plan_close(plan);
}

/* Utilities of up to 1e15, which leave no trace once they are gone, and prices that make a full tier worth as much. */
Test(evp_plan_single, numbers_at_their_limits)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_context c = { .id = "x", .token_digest = world_digest(1), .n_tokens = 1 };
    struct evp_plan_state before, after;
    struct evp_error error;
    struct buf good = { 0 };
    struct err err;

    for (int i = 0; i < 50; i++) { /* sums with bits to lose */
        char id[16];
        snprintf(id, sizeof(id), "%d", i);
        struct evp_context other = {
            .id = id, .token_digest = world_digest(2 + i), .n_tokens = 1, .frequency = 1e-9 / (3 + i)
        };
        cr_assert_eq(evp_plan_admit(plan, &other, NULL, &error), EVICPRESS_OK, "%s", error.text);
    }
    cr_assert_eq(evp_plan_status(plan, &before, NULL), EVICPRESS_OK);
    for (int i = 0; i < 4; i++) {
        c.frequency = (double[]){ 0.99e15, 1e15, 1.01e15, 1e30 }[i];
        cr_assert_eq(evp_plan_admit(plan, &c, NULL, &error), i < 2 ? EVICPRESS_OK : EVICPRESS_ARGUMENT, "%d", i);
        cr_assert(i < 2 ? evp_plan_remove(plan, "x", NULL, NULL) == EVICPRESS_OK
                        : strstr(error.text, "utility is out of range: it is above 1e+15 in size") != NULL);
        cr_assert_eq(evp_plan_status(plan, &after, NULL), EVICPRESS_OK);
        cr_assert(before.objective == after.objective && before.upper_bound == after.upper_bound, "%.17g %.17g",
                  before.objective, after.objective);
    }
    evp_plan_close(plan);
    cr_assert_eq(file_read(&good, world_path, 1 << 20, &err), 0);
    static const char *const price[] = { "\"prices\":[0.99e13]", "\"prices\":[1.01e13]" };
    for (int i = 0; i < 2; i++) {
        write_lie(world_path, &good, "\"prices\":[0]", price[i]);
        cr_assert_eq(evp_plan_open(&plan, world_path, &error), i ? EVICPRESS_DAMAGED : EVICPRESS_OK, "%s", price[i]);
        evp_plan_close(plan);
    }
    static const char *const capacity[] = { "\"capacity_bytes\":79", "\"capacity_bytes\":80", "\"capacity_bytes\":81" };
    for (int i = 0; i < 3; i++) {
        write_lie(world_path, &good, "\"capacity_bytes\":100", capacity[i]);
        cr_assert_eq(evp_plan_open(&plan, world_path, &error), i ? EVICPRESS_OK : EVICPRESS_DAMAGED, "%s", capacity[i]);
        evp_plan_close(plan);
    }
    buf_release(&good);
}

/* A plan whose only context was removed can be saved, since it has a context to evict; a plan without any cannot. */
Test(evp_plan_single, saves_what_a_manifest_can_say)
{
    struct world w;
    struct evp_plan *plan = small(&w);
    struct evp_error error;
    struct manifest m;
    struct err err;

    cr_assert_eq(evp_plan_remove(plan, "context/0", NULL, NULL), EVICPRESS_OK);
    cr_assert_eq(evp_plan_save(plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    evp_plan_close(plan);
    cr_assert_eq(manifest_read(&m, world_other_path, &err), 0, "%s", err.msg);
    cr_assert(m.n == 1 && m.at[0].operation == OP_EVICT && m.n_totals == 2);
    cr_assert(m.objective == 0 && m.total[0].utility == 0 && isnan(m.total[0].ttft_s));
    manifest_release(&m);
    cr_assert_eq(evp_plan_open(&plan, world_other_path, &error), EVICPRESS_OK, "%s", error.text);
    cr_assert_eq(evp_plan_save(plan, world_path, &error), EVICPRESS_ARGUMENT);
    cr_assert_str_eq(error.text, "the plan has no contexts, and a manifest must have one");
    evp_plan_close(plan);
}

/* ---- what is refused -------------------------------------------------------------------- */

Test(evp_plan_single, refuses_arguments_that_lie)
{
    static const int32_t tokens[] = { 1, 2, 3 };
    struct world w;
    struct evp_plan *plan = small(&w);
    const struct evp_variant good = { .config = "none", .bytes = 10, .quality = 1 };
    struct {
        struct evp_variant variant;
        struct evp_context context;
        const char *says;
    } bad[32];
    int n = 0;
    struct evp_operations ops;
    struct evp_error error;
    struct evp_plan_state before, after;
#define BAD(field, value, text)                                                                                        \
    bad[n].variant = good,                                                                                             \
    bad[n].context =                                                                                                   \
        (struct evp_context){                                                                                          \
            .id = "x", .tokens = tokens, .n_tokens = 3, .frequency = 1, .prefill_s = 1, .n_variants = 1                \
        },                                                                                                             \
    bad[n].field = value, bad[n++].says = text
    BAD(context.id, NULL, "id is NULL");
    BAD(context.id, "", "field 'id' is empty");
    BAD(context.id, "a\nb", "field 'id' has a control character");
    BAD(context.id, "a\xff", "field 'id' is not UTF-8");
    BAD(context.token_digest, "abc", "field 'token_digest' is not");
    BAD(context.tokens, NULL, "tokens and token_digest are NULL");
    BAD(context.n_tokens, 0, "n_tokens is out of range");
    BAD(context.n_tokens, (int64_t)1 << 40, "n_tokens is out of range");
    BAD(context.kv_bytes, -1, "field 'kv_bytes' is below zero");
    BAD(context.frequency, -1, "field 'frequency' is below zero");
    BAD(context.frequency, (double)NAN, "field 'frequency' is not a number");
    BAD(context.frequency, 1e250, "utility is out of range");
    BAD(context.prefill_s, HUGE_VAL, "field 'prefill_s' is not a number");
    BAD(context.question_s, -1, "field 'question_s' is below zero");
    BAD(context.n_variants, 128, "n_variants is above 127");
    BAD(context.reserved[7], 1, "reserved is not zero");
    BAD(variant.reserved[3], 1, "variant 1: reserved is not zero");
    BAD(variant.config, NULL, "variant 1: field 'config' is empty");
    BAD(variant.config, "snapkv:drop", "'snapkv:drop' is not the name of a config");
    BAD(variant.config, "Kivi:bits=2", "'Kivi:bits=2' is not the name of a config");
    BAD(variant.bytes, -1, "variant 1: field 'bytes' is below zero");
    BAD(variant.bytes, INT64_MAX, "variant 1: field 'bytes' is above 2^53");
    BAD(variant.quality, 1.1, "variant 1: field 'quality' is above one");
    BAD(variant.quality, (double)NAN, "variant 1: field 'quality' is not a number");
    BAD(variant.decompress_s, -1, "variant 1: field 'decompress_s' is below zero");
#undef BAD
    cr_assert_eq(evp_plan_status(plan, &before, NULL), EVICPRESS_OK);
    for (int i = 0; i < n; i++) {
        bad[i].context.variant = &bad[i].variant;
        cr_assert_eq(evp_plan_admit(plan, &bad[i].context, &ops, &error), EVICPRESS_ARGUMENT, "%s", bad[i].says);
        cr_assert(strstr(error.text, bad[i].says), "'%s' does not say '%s'", error.text, bad[i].says);
        cr_assert(ops.n == 0 && ops.at == NULL && error.code == EVICPRESS_ARGUMENT);
    }
    struct evp_update u = { .id = "context/0", .frequency = -1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_ARGUMENT);
    u = (struct evp_update){ .id = "context/0", .n_variants = 1 };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_ARGUMENT);
    u = (struct evp_update){ .id = "nobody" };
    cr_assert_eq(evp_plan_update(plan, &u, &ops, &error), EVICPRESS_UNKNOWN);
    cr_assert_str_eq(error.text, "context 'nobody' is not in the plan");
    cr_assert_eq(evp_plan_remove(plan, NULL, &ops, &error), EVICPRESS_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, NULL, &error), EVICPRESS_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, "-", &error), EVICPRESS_ARGUMENT);
    cr_assert_eq(evp_plan_save(plan, "/nowhere/at/all", &error), EVICPRESS_IO);
    cr_assert_eq(evp_plan_status(plan, &after, NULL), EVICPRESS_OK);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
    evp_plan_close(plan);
    evp_plan_close(NULL);
    evp_operations_release(NULL);
}

/* Each is one change to the text of a good manifest. */
Test(evp_plan_single, refuses_manifests_that_cannot_be)
{
    static const char *const change[][3] = {
        { "\"forms\"", "\"smrof\"", "context 'context/0': field 'forms' is missing" },
        { "\"capacity_bytes\":100", "\"capacity_bytes\":79", "tier 'ram' holds more than its capacity" },
        { "\"capacity_bytes\":100", "\"capacity_bytes\":0", "tier 'ram' holds more than its capacity" },
        { "\"forms\"", "\"pin\":\"recompute\",\"forms\"", "the context is on tier 'ram', but pinned to 'recompute'" },
        { "\"alpha\":1", "\"alpha\":1e999", "field 'alpha' is not a number" },
        { "\"alpha\":1", "\"alpha\":1e300", "utility is out of range" },
        { "\"prices\":[0]", "\"prices\":[1e299]", "field 'prices': the price of tier 'ram' is out of range" },
        { "\"frequency\":1", "\"frequency\":1e300", "utility is out of range" },
        { "\"read_bytes_per_s\":1000000000", "\"read_bytes_per_s\":1e-300", "latency and bandwidth are out of range" },
        { "{\"end\"", "{\"dne\"", "line 3: field 'id' is missing" },
    };
    struct world w;
    struct buf good = { 0 };
    struct evp_plan *plan = small(&w);
    struct evp_error error;
    struct err err;

    evp_plan_close(plan);
    cr_assert_eq(file_read(&good, world_path, 1 << 20, &err), 0);
    for (size_t i = 0; i < sizeof(change) / sizeof(*change); i++) {
        write_lie(world_path, &good, change[i][0], change[i][1]);
        cr_assert_eq(evp_plan_open(&plan, world_path, &error), EVICPRESS_DAMAGED, "%s", change[i][1]);
        cr_assert(strstr(error.text, change[i][2]), "'%s' does not say '%s'", error.text, change[i][2]);
        cr_assert_null(plan);
    }
    buf_release(&good);
    cr_assert_eq(evp_plan_open(&plan, "/nowhere", &error), EVICPRESS_IO);
    cr_assert_eq(evp_plan_open(&plan, "-", &error), EVICPRESS_ARGUMENT);
}

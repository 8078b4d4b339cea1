/* plan.c - device memory before the work starts: the needs of each context per area, the number of variants and
 * sequences at once, and whether all of it fits. Also the operations of the work.
 *
 * A session's memory is a pool used as a stack: activations; then per context its cache, side outputs and scores; then
 * one group of variants after the other, and on top of it either scratch to make a variant, or the sequences' store.
 */
#include "base/parse.h"
#include "engine/transformer/engine_internal.h"
#include "variants/sizes.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define FREE_SHARE 0.9 // of the free memory may be taken

const char *const plan_area_name[PLAN_AREAS] = {
    [PLAN_WEIGHTS] = "weights",       [PLAN_LOADING] = "reading them",
    [PLAN_ANGLES] = "rotary angles",  [PLAN_PASS] = "activations",
    [PLAN_SCRATCH] = "scratch",       [PLAN_CONTEXT] = "the uncompressed cache",
    [PLAN_SIDE] = "queries and sums", [PLAN_SCORES] = "scores",
    [PLAN_VARIANTS] = "variants",     [PLAN_SEQUENCES] = "questions and answers",
};

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- decoding ----------------------------------------------------------- */

uint64_t plan_decode_bytes(const struct engine *e, const struct plan_decode *d, int64_t slots)
{
    size_t heads = (size_t)e->config.n_layers * (size_t)e->config.n_kv_heads;

    return kv_store_bytes(e, (size_t)slots) + pool_size((size_t)d->n_variants * heads * sizeof(struct kv_rows));
}

/* The most slots in use at once: for all sequences, or for one average sequence per token of a pass and a longest one.
 */
static int64_t slots_wanted(const struct engine *e, const struct plan_decode *d)
{
    int64_t all = d->n_variants * d->slots, rows = e->backend->pass_rows;
    int64_t some = d->n_questions > 0 ? rows * d->slots / d->n_questions + d->longest : 0;

    return (int64_t)d->n_variants * d->n_shared + (all < some ? all : some);
}

int plan_slots(const struct engine *e, const struct plan_decode *d, uint64_t bytes)
{
    int64_t slots = slots_wanted(e, d), floor = (int64_t)d->n_variants * d->n_shared + d->longest;
    uint64_t table = plan_decode_bytes(e, d, 0);

    if (plan_decode_bytes(e, d, slots) > bytes) {
        if (bytes < table)
            return 0;
        slots = (int64_t)((bytes - table) / (kv_store_bytes(e, 64) / 64));
        while (slots >= floor && plan_decode_bytes(e, d, slots) > bytes)
            slots--;
    }
    return slots < floor || slots > INT_MAX ? 0 : (int)slots;
}

static bool repeats(const struct engine_work *w)
{
    unsigned needs;
    int window;

    configs_need(w->config, w->n_configs, &needs, &window);
    return needs & NEED_REPEAT;
}

static struct plan_decode decode_of(const struct engine_work *w, int n_variants)
{
    int more = w->max_new_tokens - 1;

    return (struct plan_decode){ .n_variants = n_variants,
                                 .n_questions = w->n_questions,
                                 .n_shared = w->n_shared,
                                 .longest = w->longest_question + more,
                                 .slots = w->question_tokens + (int64_t)w->n_questions * more };
}

/* ---- one context -------------------------------------------------------- */

/* The memory of a context's group of variants in a session. */
struct fit {
    int variants, slots; // together; 0: not even one fits
    uint64_t rows, rest; // bytes: of the variants; on top of them
};

/* The memory of n variants: their rows; on top of them the larger of the scratch to make one and of decoding with
 * `slots` slots. Scoring ends before the first variant is made, and repeating the context before the first scoring. */
static struct fit fit_of(const struct engine *e, const struct engine_work *w, int n, int slots)
{
    const struct kv_shape shape = engine_kv_shape(e, w->n_tokens);
    struct plan_decode d = decode_of(w, n);
    struct fit f = { .variants = n, .slots = slots, .rest = w->n_questions ? plan_decode_bytes(e, &d, slots) : 0 };
    struct memory_need score = configs_score_bytes(w->config, w->n_configs, &shape, w->n_tokens);
    uint64_t repeating = repeats(w) ? repeat_bytes(e, w->n_tokens) : 0;
    uint64_t before = max(score.making, repeating > score.kept ? repeating - score.kept : 0);

    for (int i = 0; i < n; i++) {
        struct memory_need need = config_variant_bytes(w->config[i], &shape, w->n_tokens);
        f.rows += need.kept;
        f.rest = max(f.rest, need.making);
    }
    f.rest = max(f.rest, before > f.rows ? before - f.rows : 0);
    if (w->n_questions) // a variant's decoding is timed alone
        f.rest = max(f.rest, plan_decode_bytes(e, &(struct plan_decode){ .n_variants = 1 }, DECODE_BATCH_MAX));
    return f;
}

/* The most variants that fit with all sequences that can be live at once; or one, with fewer sequences. */
static struct fit fit(const struct engine *e, const struct engine_work *w, uint64_t bytes)
{
    for (int n = w->n_configs; n > 0; n--) {
        struct plan_decode d = decode_of(w, n);
        int64_t slots = w->n_questions ? slots_wanted(e, &d) : 0;
        struct fit f = slots <= INT_MAX ? fit_of(e, w, n, (int)slots) : (struct fit){ 0 };
        if (f.variants && f.rows + f.rest <= bytes)
            return f;
    }
    if (w->n_configs == 0)
        return (struct fit){ 0 };
    struct plan_decode d = decode_of(w, 1);
    struct fit none = fit_of(e, w, 1, 0);
    int slots = none.rows < bytes ? plan_slots(e, &d, bytes - none.rows) : 0;
    struct fit f = fit_of(e, w, 1, slots);
    return slots && f.rows + f.rest <= bytes ? f : (struct fit){ 0 };
}

static unsigned work_needs(const struct engine_work *w)
{
    unsigned needs;
    int window;

    configs_need(w->config, w->n_configs, &needs, &window);
    return needs;
}

static void context_bytes(const struct engine *e, const struct engine_work *w, uint64_t bytes[PLAN_AREAS])
{
    const struct kv_shape shape = engine_kv_shape(e, w->n_tokens);

    bytes[PLAN_CONTEXT] = kv_store_bytes(e, (size_t)w->n_tokens);
    bytes[PLAN_SIDE] = configs_side_bytes(w->config, w->n_configs, &shape, w->n_tokens) +
                       (work_needs(w) & NEED_VALUE_NORMS ? value_norms_bytes(e, w->n_tokens) : 0);
    bytes[PLAN_SCORES] = configs_score_bytes(w->config, w->n_configs, &shape, w->n_tokens).kept;
}

int session_variants_at_once(const struct session *s, const struct engine_work *w)
{
    int n = fit(s->engine, w, s->pool.bytes - s->pool.used).variants;

    return n > 0 ? n : 1;
}

/* ---- the whole work ----------------------------------------------------- */

/* The most heads whose scores are compared with each other: a layer's at least. */
static int n_joint(const struct engine *e, const struct engine_work *w)
{
    const struct kv_shape shape = engine_kv_shape(e, w->n_tokens);
    int most = 1;

    for (int i = 0; i < w->n_configs; i++) {
        int layers = config_share(w->config[i], &shape, w->n_tokens, 0).layers;
        most = layers > most ? layers : most;
    }
    return most * shape.n_kv_heads;
}

static struct work_shape shape_of(const struct engine *e, const struct engine_work *work, int n)
{
    const struct model_config *c = &e->config;
    struct work_shape s = { .rows = e->backend->pass_rows,
                            .n_heads = c->n_heads,
                            .n_kv_heads = c->n_kv_heads,
                            .head_dim = c->head_dim,
                            .width = c->d_model,
                            .mlp = c->d_ff,
                            .expert_width = c->expert_ff,
                            .n_experts = c->n_experts,
                            .n_used = c->n_experts_used,
                            .n_vocab = c->n_vocab };

    if (model_has(c, TENSOR_Q_BIAS))
        s.biased = (c->n_heads + 2 * c->n_kv_heads) * c->head_dim;
    if (model_has(c, TENSOR_GATE_BIAS) && 2 * c->d_ff > s.biased)
        s.biased = 2 * c->d_ff;
    for (int i = 0; i < n; i++) {
        int keys = repeats(&work[i]) ? repeat_slots(work[i].n_tokens) : 0;
        keys = work[i].n_tokens > keys ? work[i].n_tokens : keys;
        s.n_keys = keys > s.n_keys ? keys : s.n_keys;
        int joint = n_joint(e, &work[i]);
        s.n_joint = joint > s.n_joint ? joint : s.n_joint;
    }
    return s;
}

/* The areas that do not depend on the context. */
static void plan_fixed(const struct engine *e, const struct engine_work *work, int n, struct engine_plan *plan)
{
    const struct work_shape shape = shape_of(e, work, n);
    struct weight_bytes weights = weights_bytes(e);

    unsigned needs = NEED_NOTHING;

    plan->max_positions = 1;
    for (int i = 0; i < n; i++) {
        int64_t end = (int64_t)work[i].n_tokens + work[i].longest_question + work[i].max_new_tokens;
        end = end < e->config.max_tokens ? end : e->config.max_tokens;
        int64_t repeated = repeats(&work[i]) ? repeat_positions(work[i].n_tokens) : 0; // also beyond max_tokens
        end = end > repeated ? end : repeated;
        needs |= work_needs(&work[i]);
        if (work_needs(&work[i]) & NEED_MOMENTS)
            end = (int64_t)max((uint64_t)end, (uint64_t)work[i].n_tokens + POSITIONS_MORE);
        plan->max_positions = end > plan->max_positions ? (int)end : plan->max_positions;
    }
    plan->bytes[PLAN_WEIGHTS] = weights.kept;
    plan->bytes[PLAN_LOADING] = weights.making;
    plan->bytes[PLAN_ANGLES] = 2 * pool_size(angles_bytes(e, plan->max_positions));
    plan->bytes[PLAN_PASS] = forward_bytes(e);
    plan->bytes[PLAN_SCRATCH] =
        e->backend->scratch(e->backend, &shape) + (needs & NEED_VALUE_NORMS ? value_norms_weight(e) : 0);
}

static uint64_t sum(const uint64_t bytes[PLAN_AREAS], int first, int last)
{
    uint64_t n = 0;

    for (int i = first; i <= last; i++)
        n += i == PLAN_LOADING ? 0 : bytes[i];
    return n;
}

/* The memory of a device on which nine tenths of what is free are enough. */
static double enough(const struct engine *e, const struct engine_plan *plan)
{
    struct device_memory m = e->backend->memory(e->backend);

    return (double)(m.total - m.free) + (double)plan->total / FREE_SHARE;
}

static int refuse(const struct engine *e, const struct engine_plan *plan, const struct engine_work *w, struct err *err)
{
    struct buf areas = { 0 };
    char size[TEXT_SHORT], limit[TEXT_SHORT];

    for (int i = 0; i < PLAN_AREAS; i++)
        if (plan->bytes[i] && i != PLAN_LOADING)
            buf_printf(&areas, "%s%s %s", areas.n ? ", " : "", plan_area_name[i],
                       text_bytes(size, (double)plan->bytes[i]));
    err_set(err, ERR_NOMEM, "%d tokens need %s of memory (%s), and %s may be taken", w->n_tokens,
            text_bytes(size, (double)plan->total), buf_str(&areas), text_bytes(limit, (double)plan->limit));
    buf_release(&areas);
    if (!plan->is_given)
        err_add(err, "; it fits a %s of %s", strcmp(e->backend->name, "cuda") == 0 ? "GPU" : "machine",
                text_bytes(size, enough(e, plan)));
    return err->code;
}

/* The largest need of one variant with one sequence. variants is 0. */
static struct fit fit_single(const struct engine *e, const struct engine_work *w)
{
    struct fit largest = { 0 };

    for (int i = 0; i < w->n_configs; i++) {
        struct engine_work one = *w;
        one.config += i;
        one.n_configs = 1;
        struct plan_decode d = decode_of(&one, 1);
        struct fit f = fit_of(e, &one, 1, d.longest + d.n_shared);
        if (f.rows + f.rest > largest.rows + largest.rest)
            largest = (struct fit){ .rows = f.rows, .rest = f.rest };
    }
    return largest;
}

/* The memory of a context's variants and sequences: the largest of the groups in which its configs will be answered.
 * variants 0: a single variant does not fit; rows and rest are its need. */
static struct fit fit_groups(const struct engine *e, const struct engine_work *w, uint64_t bytes)
{
    struct engine_work rest = *w;
    struct fit largest = { 0 };

    while (rest.n_configs > 0) {
        struct fit f = fit(e, &rest, bytes);
        if (f.variants == 0)
            return fit_single(e, w);
        if (f.rows + f.rest > largest.rows + largest.rest || largest.variants == 0)
            largest = (struct fit){ largest.variants, f.slots, f.rows, f.rest };
        if (f.variants > largest.variants)
            largest.variants = f.variants;
        rest.config += f.variants;
        rest.n_configs -= f.variants;
    }
    return largest;
}

/* Replaces the plan if this context needs more than those before. The areas decide, not the total: where reading the
 * weights is the peak, all contexts have the same total. */
static int plan_context(const struct engine *e, const struct engine_work *w, struct engine_plan *plan, struct err *err)
{
    struct engine_plan mine = *plan;

    context_bytes(e, w, mine.bytes);
    mine.bytes[PLAN_VARIANTS] = mine.bytes[PLAN_SEQUENCES] = 0;
    uint64_t fixed = sum(mine.bytes, 0, PLAN_SCORES);
    struct fit f = fit_groups(e, w, plan->limit > fixed ? plan->limit - fixed : 0);
    mine.variants = f.variants;
    mine.sequences = f.variants * w->n_questions;
    if (mine.sequences > e->backend->pass_rows)
        mine.sequences = e->backend->pass_rows;
    mine.bytes[PLAN_VARIANTS] = f.rows;
    mine.bytes[PLAN_SEQUENCES] = f.rest;
    mine.total = max(sum(mine.bytes, 0, PLAN_AREAS - 1), mine.bytes[PLAN_WEIGHTS] + mine.bytes[PLAN_LOADING]);
    if (mine.total > plan->limit || (w->n_configs > 0 && f.variants == 0))
        return refuse(e, &mine, w, err);
    if (plan->total == 0 || sum(mine.bytes, 0, PLAN_AREAS - 1) > sum(plan->bytes, 0, PLAN_AREAS - 1))
        *plan = mine;
    return 0;
}

int engine_plan(const struct engine *e, const struct engine_work *work, int n, struct engine_plan *plan,
                struct err *err)
{
    *plan = (struct engine_plan){ .limit = plan->limit, .is_given = plan->limit > 0 };
    if (!plan->is_given)
        plan->limit = (uint64_t)(FREE_SHARE * (double)e->backend->memory(e->backend).free);
    plan_fixed(e, work, n, plan);
    for (int i = 0; i < n; i++) {
        if (plan_context(e, &work[i], plan, err)) {
            plan->refused = i;
            return err->code;
        }
    }
    return 0;
}

/* ---- operations --------------------------------------------------------- */

struct engine_cost engine_cost(const struct engine *e, const struct engine_work *w)
{
    const struct model_config *c = &e->config;
    const struct kv_shape shape = engine_kv_shape(e, w->n_tokens);
    double D = c->d_model, layers = model_token_flop(c), pair = model_pair_flop(c);
    double n = w->n_tokens, Q = w->n_questions, kept = 0;
    double own = w->n_questions ? (double)w->question_tokens / Q + w->max_new_tokens - 1 : 0; // tokens of a sequence
    double rows =
        (double)kv_pairs(&shape, w->n_tokens) / kv_all_layers(&shape) / shape.n_kv_heads; // of a layer, the mean
    double once = Q > 0 ? w->n_shared : 0, tokens = once + Q * (own - once);              // per variant

    double hidden = fmax(n - c->window, 0), windowed = 0; // keys of the last query outside a window
    for (int l = 0; l < c->n_layers; l++)
        windowed += model_window(c, l) > 0;
    for (int i = 0; i < w->n_configs; i++)
        kept += config_keep_frac(w->config[i], &shape, w->n_tokens);
    return (struct engine_cost){
        .prefill_flop = n * layers + pair * (n * n - windowed / c->n_layers * hidden * hidden) / 2,
        .side_flop = repeats(w) ? repeat_flop(e, w->n_tokens) : 0,
        .decode_flop =
            w->n_configs * (tokens * layers + 2.0 * D * c->n_vocab * w->max_new_tokens * Q + Q * pair * own * own / 2) +
            tokens * pair * rows * kept,
        .shared_flop = tokens * pair * rows * kept,
    };
}

/* Memory is planned: what fits, what is refused and with which numbers, that nothing is taken beyond the plan, and that
 * every allocation that fails is an error and no leak. */
#include "engine/transformer/engine.h"

#include "base/rng.h"
#include "kernels/pool.h"
#include "tests/unit/tiny_model.h"
#include "variants/sizes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { CONFIGS = 8, QUESTIONS = 3, ASKED = 20, NEW = 8 };
static const char list[] =
    "none,knorm:drop=0.3,snapkv:drop=0.5,keydiff:drop=0.9,kivi:bits=4,snapkv:drop=0.2+kivi:bits=2,"
    "expected_attention:drop=0.6,criticalkv+snapkv:drop=0.4";

static struct {
    char model[64];
    struct config *config;
    const struct config *at[CONFIGS];
} all;

static void open_configs(void)
{
    struct err err;
    int n;

    cr_assert_eq(config_list(&all.config, &n, list, &err), 0, "%s", err.msg);
    cr_assert_eq(n, CONFIGS);
    for (int i = 0; i < n; i++)
        all.at[i] = &all.config[i];
}

static void open_all(int max_tokens)
{
    tiny_model_make_long(all.model, max_tokens);
    open_configs();
}

static void close_all(void)
{
    tiny_model_remove(all.model);
    free(all.config);
}

static struct engine_work work_of(int n_tokens)
{
    return (struct engine_work){ .n_tokens = n_tokens,
                                 .config = all.at,
                                 .n_configs = CONFIGS,
                                 .n_questions = QUESTIONS,
                                 .question_tokens = QUESTIONS * ASKED,
                                 .longest_question = ASKED,
                                 .n_shared = 5,
                                 .max_new_tokens = NEW };
}

/* ---- a backend that says what memory it has ------------------------------ */

static struct device_memory pretended;

static struct device_memory pretend(struct backend *be)
{
    (void)be;
    return pretended;
}

static struct engine *open_on(const char *backend)
{
    struct err err;
    struct backend *be = backend_open(&(struct backend_options){ .name = backend, .n_threads = 2 }, &err);

    cr_assert(be, "%s", err.msg);
    be->memory = pretend;
    struct engine *e = engine_open_on(be, all.model, &err);
    cr_assert(e, "%s", err.msg);
    return e;
}

/* Plans one context within so many bytes; 0: nine tenths of what is free. */
static int plan_in(const struct engine *e, const struct engine_work *work, uint64_t bytes, struct engine_plan *plan,
                   struct err *err)
{
    plan->limit = bytes;
    return engine_plan(e, work, 1, plan, err);
}

static int plan_with(struct engine *e, int n_tokens, size_t free_bytes, struct engine_plan *plan, struct err *err)
{
    const struct engine_work work = work_of(n_tokens);

    pretended = (struct device_memory){ (size_t)64 << 30, free_bytes };
    return plan_in(e, &work, 0, plan, err);
}

/* The minimum memory that some work is planned with. */
static uint64_t minimum_of(const struct engine *e, const struct engine_work *work)
{
    uint64_t low = 0, high = 1 << 30; // refused, planned
    struct engine_plan plan;
    struct err err;

    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        *(plan_in(e, work, middle, &plan, &err) ? &low : &high) = middle;
    }
    return high;
}

/* The more memory there is, the more is done at once, from one sequence of one variant to everything. */
Test(plan, uses_what_is_free)
{
    struct engine_plan plan, before = { 0 };
    struct err err;
    int some = 0;

    open_all(TINY_MAX_TOKENS);
    struct engine *e = open_on("cpu");
    cr_assert_eq(plan_with(e, 1000, (size_t)1 << 30, &plan, &err), 0, "%s", err.msg);
    cr_assert_eq(plan.variants, CONFIGS);
    cr_assert_eq(plan.sequences, CONFIGS * QUESTIONS);
    const struct engine_work work = work_of(1000);
    size_t enough = (size_t)((double)plan.total / 0.89), minimum = (size_t)((double)minimum_of(e, &work) / 0.9);
    for (size_t bytes = minimum - (minimum >> 4); bytes < enough; bytes += (enough - minimum) / 64) {
        if (plan_with(e, 1000, bytes, &plan, &err)) {
            cr_assert_eq(err.code, ERR_NOMEM);
            cr_assert_eq(before.variants, 0, "what fits fits with more memory");
            continue;
        }
        cr_assert(plan.total <= plan.limit && plan.limit <= bytes);
        cr_assert_geq(plan.variants, before.variants);
        some += plan.variants > 0 && plan.variants < CONFIGS;
        before = plan;
    }
    cr_assert_gt(some, 5, "nothing between one variant and all was planned");
    engine_close(e);
    close_all();
}

/* At the limit to the byte. */
Test(plan, refuses_with_the_numbers)
{
    const struct engine_work work = (open_all(TINY_MAX_TOKENS), work_of(1000));
    struct engine_plan plan;
    struct err err;
    struct engine *e = open_on("cpu");
    uint64_t minimum = minimum_of(e, &work);

    cr_assert_eq(plan_in(e, &work, minimum, &plan, &err), 0);
    cr_assert_lt(plan.variants, CONFIGS);
    cr_assert_eq(plan.total, minimum);
    cr_assert_eq(plan_in(e, &work, minimum - 1, &plan, &err), ERR_NOMEM);
    cr_assert(strstr(err.msg, "1000 tokens need") && strstr(err.msg, "weights") &&
                  strstr(err.msg, "the uncompressed cache") && strstr(err.msg, "may be taken"),
              "%s", err.msg);
    cr_assert(!strstr(err.msg, "it fits"), "the limit is the caller's: %s", err.msg);
    engine_close(e);
    close_all();
}

/* ---- a GPU's shape ---------------------------------------------------------- */

/* Llama 3.1 8B in bf16, 128k tokens, 40 variants and 50 questions on a device of 80 GB: planned in groups, though the
 * variants together are larger than the device. On one of 40 GB the weights and the uncompressed cache fit, and no
 * more. */
Test(plan, a_long_context_of_8b_fits_in_80_gb)
{
    enum { VARIANTS = 40, ASK = 50, TOKENS = 131072 };
    struct engine_plan plan = { 0 };
    struct config *config;
    const struct config *at[VARIANTS];
    struct err err;
    int n;
    struct backend *be = backend_open(&(struct backend_options){ .name = "reference", .dtype = "bf16" }, &err);

    cr_assert(be, "%s", err.msg);
    be->memory = pretend;
    be->pass_rows = 4096;
    struct engine *e = engine_open_on(be, "synthetic:llama-3.1-8b", &err);
    cr_assert(e, "%s", err.msg);
    cr_assert_eq(config_list(&config, &n, "knorm:drop=0.22..0.6/0.01", &err), 0, "%s", err.msg);
    cr_assert_eq(n, VARIANTS);
    for (int i = 0; i < n; i++)
        at[i] = &config[i];
    const struct engine_work work = { .n_tokens = TOKENS,
                                      .config = at,
                                      .n_configs = n,
                                      .n_questions = ASK,
                                      .question_tokens = ASK * 40,
                                      .longest_question = 64,
                                      .n_shared = 20,
                                      .max_new_tokens = 64 };
    pretended = (struct device_memory){ 80000000000, 79000000000 };
    cr_assert_eq(engine_plan(e, &work, 1, &plan, &err), 0, "%s", err.msg);
    cr_assert(plan.total <= plan.limit && plan.limit <= pretended.free);
    cr_assert(plan.variants > 1 && plan.variants < VARIANTS, "%d", plan.variants);
    cr_assert_eq(plan.bytes[PLAN_CONTEXT], (uint64_t)TOKENS * 131072); // 32 layers, 8 heads, 128 numbers, K and V
    cr_assert(plan.bytes[PLAN_WEIGHTS] > 16000000000 && plan.bytes[PLAN_WEIGHTS] < 18000000000);
    pretended = (struct device_memory){ 40000000000, 39000000000 };
    plan = (struct engine_plan){ 0 };
    cr_assert_eq(engine_plan(e, &work, 1, &plan, &err), ERR_NOMEM);
    cr_assert(strstr(err.msg, "131072 tokens need") && strstr(err.msg, "the uncompressed cache 16.0 GiB") &&
                  strstr(err.msg, "may be taken"),
              "%s", err.msg);
    /* As much as it says is enough, and hardly less. */
    const char *says = strstr(err.msg, "; it fits a machine of ");
    double gib = 0;
    cr_assert(says && sscanf(says, "; it fits a machine of %lf GiB", &gib) == 1, "%s", err.msg);
    for (int less = 0; less < 2; less++) {
        uint64_t total = (uint64_t)((gib + (less ? -0.1 : 0.1)) * 1073741824);
        pretended = (struct device_memory){ total, total - 1000000000 };
        plan = (struct engine_plan){ 0 };
        cr_assert_eq(engine_plan(e, &work, 1, &plan, &err), less ? ERR_NOMEM : 0, "%s", err.msg);
    }
    free(config);
    engine_close(e);
}

/* ---- work as planned ------------------------------------------------------ */

/* One context through prefill, all variants in the groups that memory allows, and their answers. */
static int do_context(struct session *s, const struct engine_work *work, int *n_groups, struct err *err)
{
    static int32_t ids[1 << 17];
    struct prefill p = { .ids = ids, .n = work->n_tokens };
    struct question_ids question[QUESTIONS];
    struct answer answer[CONFIGS * QUESTIONS] = { 0 };
    struct compressor *c = NULL;

    for (int i = 0; i < work->n_tokens + ASKED; i++)
        ids[i] = i * 7 % TINY_VOCAB;
    for (int q = 0; q < QUESTIONS; q++)
        question[q] = (struct question_ids){ ids, ASKED };
    configs_need(work->config, work->n_configs, &p.needs, &p.window);
    int code = session_prefill(s, &p, NULL, err);
    if (!code)
        code = session_repeat(s, &p, err);
    if (!code) {
        c = compressor_new(session_full(s), work->config, work->n_configs, err);
        code = c ? 0 : err->code;
    }
    *n_groups = 0;
    for (int first = 0, n; first < work->n_configs && !code; first += n, ++*n_groups) {
        struct engine_work rest = *work;
        struct variant variant[CONFIGS] = { 0 };
        const struct variant *at[CONFIGS];
        struct pool *pool = session_full(s)->pool;
        size_t mark = pool_mark(pool);
        rest.config += first;
        rest.n_configs -= first;
        n = session_variants_at_once(s, &rest);
        for (int i = 0; i < n && !code; i++) {
            code = compressor_variant(c, rest.config[i], VARIANT_ROWS, &variant[i], err);
            at[i] = &variant[i];
        }
        struct decode job = { .variant = at,
                              .n_variants = n,
                              .question = question,
                              .n_questions = work->n_questions,
                              .n_shared = work->n_shared,
                              .max_new_tokens = NEW };
        if (!code && work->n_questions)
            code = session_decode(s, &job, answer, err);
        for (int i = 0; i < n; i++)
            variant_release(&variant[i]);
        for (int i = 0; i < CONFIGS * QUESTIONS; i++) {
            free(answer[i].ids);
            answer[i].ids = NULL;
        }
        pool_reset(pool, mark);
    }
    compressor_free(c);
    return code;
}

static int do_work(struct engine *e, const struct engine_plan *plan, const struct engine_work *work, int *n_groups,
                   struct err *err)
{
    struct session *s = engine_load(e, plan, err) ? NULL : session_new(e, err);
    int code = s ? do_context(s, work, n_groups, err) : err->code;

    session_free(s);
    return code;
}

/* With every amount of memory that is enough, the work is done in what was planned for it. */
Test(plan, is_enough_for_the_work)
{
    const struct engine_work work = (open_all(TINY_MAX_TOKENS), work_of(700));
    struct engine_plan plan;
    struct err err;
    int groups, max_groups = 0;
    struct engine *sizes = open_on("cpu");
    uint64_t minimum = minimum_of(sizes, &work);

    cr_assert_eq(plan_in(sizes, &work, (uint64_t)1 << 30, &plan, &err), 0);
    uint64_t step = (plan.total - minimum) / 20;
    engine_close(sizes);
    for (int i = 0; i <= 20; i++) {
        struct engine *e = open_on("cpu");
        uint64_t bytes = minimum + (uint64_t)i * step;
        cr_assert_eq(plan_in(e, &work, bytes, &plan, &err), 0, "%s", err.msg);
        cr_assert_eq(do_work(e, &plan, &work, &groups, &err), 0, "%llu bytes: %s", (unsigned long long)bytes, err.msg);
        max_groups = groups > max_groups ? groups : max_groups;
        engine_close(e);
    }
    cr_assert_gt(max_groups, 2, "memory was never short");
    close_all();
}

/* A drawn context: its tokens, some of the configs, asked or only packed. */
static struct engine_work draw_work(struct rng *rng)
{
    struct engine_work w = work_of(20 + (int)rng_below(rng, 500));
    int first = (int)rng_below(rng, CONFIGS);

    w.config += first;
    w.n_configs = 1 + (int)rng_below(rng, (uint64_t)(CONFIGS - first));
    w.n_questions = (int)rng_below(rng, QUESTIONS + 1);
    w.question_tokens = w.n_questions * ASKED;
    if (w.n_questions == 0)
        w.n_shared = w.longest_question = w.max_new_tokens = 0;
    return w;
}

/* A session holds every context of its list, whatever the order, and also where reading the weights takes the most. */
Test(plan, is_enough_for_each_of_a_list)
{
    enum { WORKS = 5, LISTS = 6, WIDE = 40000 };
    struct rng rng = rng_named(1, "lists of work");
    int n_read = 0, n_held = 0, groups;
    struct err err;

    open_configs();
    for (int l = 0; l < LISTS; l++) {
        struct engine_work work[WORKS];
        struct engine_plan plan = { 0 };
        tiny_model_make_wide(all.model, l % 2 ? WIDE : TINY_VOCAB);
        struct engine *e = open_on("reference");
        pretended = (struct device_memory){ (size_t)64 << 30, (size_t)1 << 30 };
        for (int i = 0; i < WORKS; i++)
            work[i] = draw_work(&rng);
        cr_assert_eq(engine_plan(e, work, WORKS, &plan, &err), 0, "%s", err.msg);
        *(plan.total == plan.bytes[PLAN_WEIGHTS] + plan.bytes[PLAN_LOADING] ? &n_read : &n_held) += 1;
        struct session *s = engine_load(e, &plan, &err) ? NULL : session_new(e, &err);
        cr_assert(s, "%s", err.msg);
        for (int i = 0; i < WORKS; i++)
            cr_assert_eq(do_context(s, &work[i], &groups, &err), 0, "list %d, context %d of %d tokens: %s", l, i,
                         work[i].n_tokens, err.msg);
        session_free(s);
        engine_close(e);
        tiny_model_remove(all.model);
    }
    cr_assert(n_read > 0 && n_held > 0, "%d lists with the weights as the peak, %d without", n_read, n_held);
    free(all.config);
}

/* The model repeats the context in what was planned, too, to the byte: a short one, whose repetition takes more than
 * its variants, and one at the end of the model's positions. */
Test(plan, is_enough_to_repeat_a_context)
{
    static const char repeating[] = "none,kvzip:drop=0.9,kvzip:drop=0.1:over=layer+kivi:bits=2";
    struct config *config;
    const struct config *at[3];
    struct engine_plan plan;
    struct err err;
    int n, groups;

    open_all(TINY_MAX_TOKENS);
    cr_assert_eq(config_list(&config, &n, repeating, &err), 0, "%s", err.msg);
    for (int i = 0; i < n; i++)
        at[i] = &config[i];
    for (int i = 0; i < 3; i++) {
        struct engine *e = open_on("cpu");
        struct engine_work work = work_of(i == 2 ? TINY_MAX_TOKENS - ASKED - NEW : 300), plain = work;
        work.config = at;
        work.n_configs = n;
        double side = engine_cost(e, &work).side_flop, prefill = engine_cost(e, &work).prefill_flop;
        cr_assert(side > prefill && side < 8 * prefill && engine_cost(e, &plain).side_flop == 0);
        uint64_t bytes = minimum_of(e, &work);
        cr_assert_eq(plan_in(e, &work, bytes - (i == 1), &plan, &err), i == 1 ? ERR_NOMEM : 0, "%s", err.msg);
        if (i != 1)
            cr_assert_eq(do_work(e, &plan, &work, &groups, &err), 0, "%s", err.msg);
        engine_close(e);
    }
    free(config);
    close_all();
}

/* ---- allocations that fail ------------------------------------------------ */

static void *(*real_alloc)(struct backend *be, size_t bytes, struct err *err);
static int allocations_left;

static void *scarce_alloc(struct backend *be, size_t bytes, struct err *err)
{
    if (allocations_left-- > 0)
        return real_alloc(be, bytes, err);
    err_set(err, ERR_NOMEM, "out of memory");
    return NULL;
}

Test(plan, every_allocation_may_fail)
{
    const struct engine_work work = (open_all(TINY_MAX_TOKENS), work_of(300));
    struct engine_plan plan;
    struct err err;
    int code = ERR_NOMEM, n, groups;

    for (n = 0; code; n++) {
        struct engine *e = open_on("reference");
        struct backend *be = engine_backend(e);
        real_alloc = be->alloc;
        be->alloc = scarce_alloc;
        allocations_left = n;
        cr_assert_eq(plan_in(e, &work, 1 << 30, &plan, &err), 0, "%s", err.msg);
        code = do_work(e, &plan, &work, &groups, &err);
        cr_assert(code == 0 || code == ERR_NOMEM, "%s", err.msg);
        engine_close(e);
    }
    cr_assert_gt(n, 5);
    close_all();
}

/* ---- what the process really takes ---------------------------------------- */

static double peak_rss(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024;
}

static void stays_below(int n_tokens)
{
    const struct engine_work work = (open_all(40000), work_of(n_tokens));
    const double libraries = 24 << 20; // code and tables of oneDNN and OpenMP, and stacks
    struct engine_plan plan;
    struct err err;
    int groups;

    struct engine *e = open_on("cpu");
    double before = peak_rss();
    cr_assert_eq(plan_in(e, &work, (uint64_t)2 << 30, &plan, &err), 0, "%s", err.msg);
    cr_assert_eq(do_work(e, &plan, &work, &groups, &err), 0, "%s", err.msg);
    double taken = peak_rss() - before;
    cr_assert_lt(taken, (double)plan.total + libraries, "%d tokens: %.1f MB were planned, %.1f MB taken", n_tokens,
                 (double)plan.total / 1e6, taken / 1e6);
    cr_assert_gt(taken, 0.3 * (double)(plan.total - plan.bytes[PLAN_SCRATCH]),
                 "%d tokens: %.1f MB were planned, %.1f MB taken", n_tokens, (double)plan.total / 1e6, taken / 1e6);
    engine_close(e);
    close_all();
}

Test(plan, is_more_than_4k_tokens_take)
{
    stays_below(4096);
}

Test(plan, is_more_than_32k_tokens_take)
{
    stays_below(32768);
}

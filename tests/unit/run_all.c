/* Every context of a grid measured and kept, on a tiny model and a backend that fails when it is told to. */
#include "profiler/run/run_all.h"

#include "base/file.h"
#include "profiler/run/groups.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXTS = 3 };
static char text[] = "The fox jumps over Reginald.", ask[] = " {question}", none[] = "", who[] = "Who?";
static char id[CONTEXTS][2] = { "a", "b", "c" }, question_id[CONTEXTS][3] = { "qa", "qb", "qc" };

static struct {
    char model[64], dir[32], *path;
    struct contexts contexts;
    struct questions questions;
    struct config *config;
    int n_configs;
    struct engine *engine;
    struct session *session;
    struct shards shards;
    struct table_made made;
    struct grid grid;
    int n_begun, n_failed, code;
    double until;
} w;

/* The backend's own sync, and the context during which sync fails instead, with what. */
static int (*true_sync)(struct backend *, struct err *);
static int fail_in, fail_with;

static int failing_sync(struct backend *be, struct err *err)
{
    int code = true_sync(be, err);

    return !code && w.n_begun == fail_in ? err_set(err, fail_with, "the device fell off the bus") : code;
}

static void open_engine(void)
{
    struct err err = { 0 };

    tiny_model_make(w.model);
    w.engine = engine_open(&(struct engine_options){ .model = w.model, .backend = "reference", .n_threads = 1 }, &err);
    cr_assert(w.engine, "%s", err.msg);
}

static void start_engine(void)
{
    struct err err = { 0 };
    struct engine_work work[CONTEXTS];
    const struct config *const list[] = { &w.config[0] };

    for (int i = 0; i < CONTEXTS; i++)
        work[i] = work_at_most(&w.grid, &w.grid.work[i], list, 1);
    w.session = engine_start(w.engine, work, CONTEXTS, 0, &err);
    cr_assert(w.session, "%s", err.msg);
    true_sync = engine_backend(w.engine)->sync;
    engine_backend(w.engine)->sync = failing_sync;
}

static void open_inputs(void)
{
    struct err err = { 0 };

    w.contexts.at = calloc(CONTEXTS, sizeof(*w.contexts.at));
    w.questions.at = calloc(CONTEXTS, sizeof(*w.questions.at));
    w.contexts.n = w.questions.n = CONTEXTS;
    for (int i = 0; i < CONTEXTS; i++) {
        w.contexts.at[i] = (struct context){ .id = id[i], .text = text, .ask = ask, .dataset = none };
        w.questions.at[i] = (struct question){ .id = question_id[i], .context = id[i], .text = who, .origin = none };
        cr_assert_eq(map_add(&w.contexts.ids, id[i], 1, NULL), i);
    }
    cr_assert_eq(config_list(&w.config, &w.n_configs, "none", &err), 0, "%s", err.msg);
}

static void open_world(void)
{
    struct err err = { 0 };

    open_engine();
    open_inputs();
    snprintf(w.dir, sizeof(w.dir), "/tmp/evp-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(w.dir));
    w.path = file_join(w.dir, "p.h5");
    w.made = (struct table_made){ "tiny", "", "reference", "f32", 2, "", 0, "" };
    cr_assert_eq(shards_open(&w.shards, w.path, SHARDS_WRITE, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_read(&w.shards, &w.made, SHARDS_EXTEND, &err), 0, "%s", err.msg);
    struct grid_input in = { .contexts = &w.contexts,
                             .questions = &w.questions,
                             .config = w.config,
                             .n_configs = w.n_configs,
                             .max_new_tokens = 2,
                             .times_decoding = true,
                             .shard = { 1, 1 },
                             .model_tokens = 2000,
                             .tokenizer = engine_tokenizer(w.engine),
                             .shards = &w.shards };
    cr_assert_eq(grid_begin(&w.grid, &in, &err), 0, "%s", err.msg);
    cr_assert_eq(grid_plan(&w.grid, &in, &err), 0, "%s", err.msg);
    cr_assert_eq(w.grid.n_contexts, CONTEXTS);
    start_engine();
    cr_assert_eq(shards_begin(&w.shards, &err), 0, "%s", err.msg);
}

static void close_world(void)
{
    grid_release(&w.grid);
    shards_close(&w.shards);
    unlink(w.path);
    cr_assert_eq(rmdir(w.dir), 0);
    free(w.path);
    free(w.config);
    map_release(&w.contexts.ids);
    free(w.contexts.at);
    free(w.questions.at);
    session_free(w.session);
    engine_close(w.engine);
    tiny_model_remove(w.model);
}

TestSuite(run_all, .init = open_world, .fini = close_world);

static void on_context(void *arg, const struct work *work)
{
    (void)arg;
    cr_assert_str_eq(work->context->id, id[w.n_begun++]);
}

static void on_failure(void *arg, const struct work *work, const struct err *why)
{
    (void)arg;
    cr_assert_str_eq(work->context->id, id[w.n_begun - 1]);
    w.n_failed++;
    w.code = why->code;
}

static void on_left(void *arg, const struct work *work)
{
    (void)arg;
    cr_assert_str_eq(work->context->id, id[w.n_begun]);
    grid_leave(&w.grid, work);
    w.n_begun++;
}

/* Runs all; a failure of kind `code` happens in context number `context`, from 1. */
static int run_with(int context, int code, struct err *err)
{
    const struct run_watch watch = { on_context, on_failure, on_left, NULL, w.until };
    struct run run = { .engine = w.engine, .session = w.session, .grid = &w.grid, .made = &w.made, .lineage = "{}" };

    fail_in = context;
    fail_with = code;
    return run_all(&run, &w.shards, &watch, err);
}

/* Contexts in FILE after the end of the run. */
static int n_kept(void)
{
    struct table t;
    struct err err;

    cr_assert_eq(shards_finish(&w.shards, &(struct shards_whole){ .order = &w.contexts.ids, .lineage = "{}" }, &err), 0,
                 "%s", err.msg);
    cr_assert_eq(table_read(&t, w.path, TABLE_ALL, &err), 0, "%s", err.msg);
    int n = t.n_contexts;
    for (int c = 0; c < n; c++)
        for (int b = 0; b < TABLE_BATCHES; b++)
            cr_assert_gt(t.decode_s[b][c], 0, "context %d at batch %d: %g", c, table_batch[b], t.decode_s[b][c]);
    table_release(&t);
    return n;
}

Test(run_all, every_context_is_kept)
{
    struct err err;

    cr_assert_eq(run_with(0, 0, &err), 0, "%s", err.msg);
    cr_assert(w.n_begun == 3 && w.n_failed == 0);
    cr_assert_eq(n_kept(), 3);
}

Test(run_all, a_context_that_fails_is_left_out)
{
    struct err err;

    cr_assert_eq(run_with(2, ERR_NOMEM, &err), 0, "%s", err.msg);
    cr_assert(w.n_begun == 3 && w.n_failed == 1 && w.code == ERR_NOMEM);
    cr_assert_eq(n_kept(), 2);
}

Test(run_all, a_device_that_fails_ends_the_run)
{
    struct err err;

    cr_assert_eq(run_with(2, ERR_LOST, &err), ERR_LOST);
    cr_assert_str_eq(err.msg, "context 'b': the device fell off the bus");
    cr_assert(w.n_begun == 2 && w.n_failed == 0, "no other context was tried");
    cr_assert_eq(n_kept(), 1, "what was finished stays");
}

Test(run_all, the_first_context_is_begun_whatever_the_time)
{
    struct err err;

    w.until = 1e-9;
    cr_assert_eq(run_with(0, 0, &err), 0, "%s", err.msg);
    cr_assert(w.grid.n_left == 2 && w.grid.n_contexts == 1 && w.grid.n_answers == 1 && w.grid.n_variants == 1);
    cr_assert_eq(n_kept(), 1);
}

/* The shards of a profile: what was finished is found again, what does not belong is refused, no file is left over. */
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "profiler/run/shards.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const struct table_made made = { "m", DIGEST, "cpu", "f32", 32, "", 0, "" };

/* One context with two questions, configs none and `config`, everything run. */
static void make(struct table *t, const char *id, const char *config, int64_t bytes)
{
    static char question[8][16];
    static int next;
    struct err err;

    cr_assert_eq(table_alloc(t, 1, 2, 1, &err), 0);
    cr_assert_eq(table_set_made(t, &made, &err), 0);
    char *q = question[next++ % 8];
    snprintf(q, sizeof(question[0]), "%s?", id);
    t->context_id[0] = id;
    t->context_token_digest[0] = DIGEST;
    t->config_name[0] = "none";
    t->config_name[1] = config;
    t->question_id[0] = t->question_text[0] = q;
    t->question_split[0] = "train";
    t->question_context[0] = 0;
    for (int v = 0; v < 2; v++) {
        t->cell_bytes[v] = bytes + v;
        t->size_frac[v] = t->keep_frac[v] = 1;
        t->answer_n_tokens[v] = 1;
        t->answer_text[v] = "yes";
    }
}

static void put(struct shards *s, const char *id, const char *config, int64_t bytes)
{
    struct table t;
    struct err err;

    make(&t, id, config, bytes);
    cr_assert_eq(shards_put(s, &t, &err), 0, "%s", err.msg);
    table_release(&t);
}

static char dir[] = "/tmp/evp-unit-XXXXXX", *path, *folder;

static void open_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    path = file_join(dir, "p.h5");
    folder = file_join(dir, "p.h5.d");
}

static void close_dir(void)
{
    unlink(path);
    rmdir(folder);
    cr_assert_eq(rmdir(dir), 0, "something stayed behind in %s", dir);
}

TestSuite(shards, .init = open_dir, .fini = close_dir);

static void begin(struct shards *s, enum shards_old old)
{
    struct err err;

    cr_assert_eq(shards_open(s, path, SHARDS_WRITE, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_read(s, &made, old, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_set_made(s, &made, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_begin(s, &err), 0, "%s", err.msg);
}

static void finish(struct shards *s, const char *lineage)
{
    struct map order = { 0 };
    struct err err;

    cr_assert(map_add(&order, "a", 1, NULL) == 0 && map_add(&order, "b", 1, NULL) == 1);
    cr_assert_eq(shards_finish(s, &(struct shards_whole){ .order = &order, .lineage = lineage }, &err), 0, "%s",
                 err.msg);
    map_release(&order);
    shards_close(s);
    cr_assert(!file_exists(folder));
}

Test(shards, finds_finished_contexts_again)
{
    struct shards s;
    struct table t;
    struct err err;

    begin(&s, SHARDS_EXTEND);
    cr_assert(!shards_has(&s, "b", "none", "b?"));
    put(&s, "b", "knorm:drop=0.5", 100);
    shards_close(&s); // as if killed: the shard stays
    static const char *const rests[] = {
        "0123456789abcdef.h5.tmp.AbCdEf", "0123456789abcde.h5",       "0123456789abcdef0.h5",
        "0123456789abcdef-.h5",           "0123456789abcdef-1.h5",    "0123456789abcdef-02.h5",
        "0123456789abcdef-2x.h5",         "0123456789abcdef-1000.h5", "0123456789abcde-2.h5"
    };
    enum { RESTS = sizeof(rests) / sizeof(*rests) };
    char *rest[RESTS];
    for (int i = 0; i < RESTS; i++) {
        rest[i] = file_join(folder, rests[i]);
        cr_assert_eq(file_write(rest[i], "half", 4, &err), 0);
    }

    begin(&s, SHARDS_EXTEND);
    cr_assert(shards_has(&s, "b", "none", "b?") && shards_has(&s, "b", "knorm:drop=0.5", "b?"));
    cr_assert(!shards_has(&s, "b", "kivi:bits=2", "b?") && !shards_has(&s, "a", "none", "a?"));
    for (int i = 0; i < RESTS; i++)
        cr_assert(!file_exists(rest[i]), "%s", rests[i]);
    put(&s, "a", "knorm:drop=0.5", 200);
    put(&s, "b", "kivi:bits=2", 300); // none is there already: only kivi counts
    finish(&s, "{}");
    for (int i = 0; i < RESTS; i++)
        free(rest[i]);

    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert(t.n_contexts == 2 && t.n_configs == 3 && t.n_questions == 2);
    cr_assert_str_eq(t.context_id[0], "a"); // the order of the contexts, not of the work
    const int64_t bytes[] = { 200, 201, -1, 100, 101, 301 };
    for (int i = 0; i < 6; i++)
        cr_assert_eq(t.cell_bytes[i], bytes[i], "cell %d", i);
    table_release(&t);
}

Test(shards, leaves_a_file_that_has_everything_alone)
{
    struct shards s;
    struct table t;
    struct err err;

    begin(&s, SHARDS_EXTEND);
    put(&s, "a", "knorm:drop=0.5", 1);
    finish(&s, "{\"n\":1}");
    begin(&s, SHARDS_EXTEND);
    finish(&s, "{\"n\":2}");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_str_eq(t.lineage, "{\"n\":1}");
    table_release(&t);
    begin(&s, SHARDS_EXTEND);
    put(&s, "b", "knorm:drop=0.5", 1);
    finish(&s, "{\"n\":3}");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_str_eq(t.lineage, "{\"n\":3}");
    cr_assert_eq(t.n_contexts, 2);
    table_release(&t);
}

/* What shards_read() says of the files to a process that only looks. */
static int look(struct shards *s, const struct table_made *as, enum shards_old old, struct err *err)
{
    cr_assert_eq(shards_open(s, path, SHARDS_LOOK, err), 0, "%s", err->msg);
    int code = shards_read(s, as, old, err);
    if (code)
        shards_close(s);
    return code;
}

Test(shards, refuses_what_does_not_belong)
{
    struct shards s, second;
    struct err err;
    struct table_made other = made;

    begin(&s, SHARDS_EXTEND);
    put(&s, "a", "knorm:drop=0.5", 1);
    other.max_new_tokens = 31;
    cr_assert_eq(look(&second, &other, SHARDS_EXTEND, &err), ERR_FORMAT, "a shard counts as well");
    finish(&s, "{}");
    cr_assert_eq(look(&s, &other, SHARDS_EXTEND, &err), ERR_FORMAT);
    other = made;
    other.model_digest = "";
    cr_assert_eq(look(&s, &other, SHARDS_EXTEND, &err), ERR_FORMAT);
    other = made;
    other.dtype = "bf16";
    cr_assert_eq(look(&s, &other, SHARDS_EXTEND, &err), ERR_FORMAT);
    cr_assert_eq(look(&s, &other, SHARDS_OVERWRITE, &err), 0);
    cr_assert(!shards_has(&s, "a", "none", "a?"));
    shards_close(&s);
    cr_assert_eq(look(&s, &made, SHARDS_EXTEND, &err), 0);
    cr_assert_eq(shards_check_context(&s, "a", DIGEST, &err), 0);
    cr_assert_eq(shards_check_context(&s, "a", "", &err), ERR_FORMAT);
    cr_assert_eq(shards_check_question(&s, "a?", "a", "a?", &err), 0);
    cr_assert_eq(shards_check_question(&s, "a?", "b", "a?", &err), ERR_FORMAT);
    cr_assert_eq(shards_check_question(&s, "a?", "a", "why?", &err), ERR_FORMAT);
    shards_close(&s);
}

/* Backend and dtype are known when the device is open, after the shards was read. */
Test(shards, a_device_that_does_not_belong_is_refused_before_anything_changes)
{
    struct table_made early = made, other = made;
    struct shards s;
    struct err err;

    begin(&s, SHARDS_EXTEND);
    put(&s, "a", "knorm:drop=0.5", 1);
    shards_close(&s);
    early.backend = early.dtype = NULL;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(shards_open(&s, path, SHARDS_WRITE, &err), 0, "%s", err.msg);
        cr_assert_eq(shards_read(&s, &early, SHARDS_EXTEND, &err), 0, "%s", err.msg);
        cr_assert(shards_has(&s, "a", "none", "a?"));
        other.backend = i == 0 ? "reference" : made.backend;
        other.dtype = i == 1 ? "bf16" : made.dtype;
        cr_assert_eq(shards_set_made(&s, &other, &err), i < 2 ? ERR_FORMAT : 0);
        if (i == 2)
            finish(&s, "{}");
        else
            shards_close(&s);
    }
}

Test(shards, one_process_at_a_time)
{
    struct shards s, second;
    struct err err;

    begin(&s, SHARDS_EXTEND);
    cr_assert_eq(shards_open(&second, path, SHARDS_WRITE, &err), ERR_IO);
    cr_assert(strstr(err.msg, "another process is writing"), "%s", err.msg);
    cr_assert_eq(shards_open(&second, path, SHARDS_LOOK, &err), 0, "to look takes no lock");
    shards_close(&second);
    put(&s, "a", "knorm:drop=0.5", 1);
    finish(&s, "{}");
}

/* What was read must be what is there when the results are written: the lock comes first. */
Test(shards, a_run_that_ended_after_this_one_began_loses_nothing)
{
    struct shards first, second;
    struct table t;
    struct err err;

    cr_assert_eq(shards_open(&first, path, SHARDS_WRITE, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_read(&first, &made, SHARDS_EXTEND, &err), 0, "%s", err.msg);
    int refused = shards_open(&second, path, SHARDS_WRITE, &err); // while the first plans its work
    cr_assert_eq(shards_begin(&first, &err), 0, "%s", err.msg);
    put(&first, "a", "knorm:drop=0.5", 1);
    finish(&first, "{}");
    cr_assert_eq(refused, ERR_IO);

    begin(&second, SHARDS_EXTEND);
    cr_assert(shards_has(&second, "a", "none", "a?"));
    put(&second, "b", "knorm:drop=0.5", 1);
    finish(&second, "{}");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_eq(t.n_contexts, 2);
    table_release(&t);
}

/* A process without our lock takes FILE away, or puts another there. */
Test(shards, a_file_that_comes_or_goes_is_seen_at_the_end)
{
    struct shards s;
    struct table t;
    struct err err;
    char *aside = file_join(dir, "aside.h5");

    begin(&s, SHARDS_EXTEND);
    put(&s, "a", "knorm:drop=0.5", 1);
    finish(&s, "{}");
    cr_assert_eq(rename(path, aside), 0);
    begin(&s, SHARDS_EXTEND);
    put(&s, "b", "knorm:drop=0.5", 1);
    cr_assert_eq(rename(aside, path), 0);
    finish(&s, "{}");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert_eq(t.n_contexts, 2, "the file that came is kept");
    table_release(&t);

    begin(&s, SHARDS_EXTEND); // nothing is left to do, and FILE goes
    cr_assert_eq(rename(path, aside), 0);
    finish(&s, "{}");
    unlink(aside);
    free(aside);
}

Test(shards, a_refused_run_leaves_no_folder)
{
    struct shards s;
    struct err err;

    cr_assert_eq(shards_open(&s, path, SHARDS_WRITE, &err), 0);
    cr_assert(file_is_dir(folder));
    shards_close(&s);
    cr_assert_not(file_exists(folder));
    cr_assert_eq(shards_open(&s, path, SHARDS_LOOK, &err), 0);
    cr_assert_not(file_exists(folder));
    shards_close(&s);
}

/* Runs that are killed and go on: each adds a shard, none rewrites one. */
Test(shards, every_result_gets_a_shard_of_its_own)
{
    static const char *const config[] = { "knorm:drop=0.1", "knorm:drop=0.2",   "knorm:drop=0.3", "knorm:drop=0.4",
                                          "knorm:drop=0.5", "knorm:drop=0.6",   "knorm:drop=0.7", "knorm:drop=0.8",
                                          "knorm:drop=0.9", "keydiff:drop=0.5", "kivi:bits=2" };
    struct shards s;
    struct table t;
    struct err err;

    for (int i = 0; i < 11; i++) {
        begin(&s, SHARDS_EXTEND);
        cr_assert(i == 0 || shards_has(&s, "a", config[i - 1], "a?"));
        static char question[] = "a?";
        make(&t, "a", config[i], 100 * i);
        t.question_id[0] = t.question_text[0] = question;
        cr_assert_eq(shards_put(&s, &t, &err), 0, "%s", err.msg);
        table_release(&t);
        shards_close(&s);
    }
    begin(&s, SHARDS_EXTEND);
    finish(&s, "{}");
    cr_assert_eq(table_read(&t, path, TABLE_ALL, &err), 0, "%s", err.msg);
    cr_assert(t.n_contexts == 1 && t.n_questions == 1 && t.n_configs == 12);
    cr_assert_eq(t.cell_bytes[0], 0, "the first run's reference counts");
    for (int i = 0; i < 11; i++) {
        cr_assert_str_eq(t.config_name[i + 1], config[i], "shards are read in the order in which they were written");
        cr_assert_eq(t.cell_bytes[i + 1], 100 * i + 1);
    }
    table_release(&t);
}

/* 999 of a context; the last one is still read. */
Test(shards, a_context_has_a_largest_number_of_shards)
{
    char hash[XXH3_HEX], name[32];
    struct shards s;
    struct table t;
    struct err err;

    digest_xxh3_hex("a", 1, hash);
    begin(&s, SHARDS_EXTEND);
    for (int n = 1; n <= 998; n++) {
        snprintf(name, sizeof(name), n > 1 ? "%s-%d.h5" : "%s.h5", hash, n);
        int fd = openat(s.lock, name, O_CREAT | O_WRONLY, 0600);
        cr_assert_geq(fd, 0);
        close(fd);
    }
    put(&s, "a", "knorm:drop=0.5", 1);
    make(&t, "a", "kivi:bits=2", 1);
    cr_assert_eq(shards_put(&s, &t, &err), ERR_FAIL);
    cr_assert(strstr(err.msg, "context 'a' already has 999 shards"), "%s", err.msg);
    table_release(&t);
    for (int n = 1; n <= 998; n++) {
        snprintf(name, sizeof(name), n > 1 ? "%s-%d.h5" : "%s.h5", hash, n);
        cr_assert_eq(unlinkat(s.lock, name, 0), 0);
    }
    shards_close(&s);
    begin(&s, SHARDS_EXTEND);
    cr_assert(shards_has(&s, "a", "none", "a?"));
    finish(&s, "{}");
}

static int n_forks;

static void count_fork(void)
{
    n_forks++;
}

/* A device is open from before shards_begin() until after the last shards_put(). */
Test(shards, no_process_is_started_while_a_device_may_be_open)
{
    struct shards s;
    struct err err;

    cr_assert_eq(pthread_atfork(count_fork, NULL, NULL), 0);
    begin(&s, SHARDS_EXTEND);
    put(&s, "a", "knorm:drop=0.5", 1);
    shards_close(&s);
    cr_assert_eq(shards_open(&s, path, SHARDS_WRITE, &err), 0, "%s", err.msg);
    cr_assert_eq(shards_read(&s, &made, SHARDS_EXTEND, &err), 0, "%s", err.msg);
    cr_assert_eq(n_forks, 1, "reading a shard starts one");
    cr_assert_eq(shards_begin(&s, &err), 0, "%s", err.msg);
    put(&s, "a", "kivi:bits=2", 1); // there is a shard of this context already
    put(&s, "b", "knorm:drop=0.5", 1);
    cr_assert_eq(n_forks, 1);
    finish(&s, "{}");
}

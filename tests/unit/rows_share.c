/* Streams that several threads read are what one thread makes of them: the same rows in the same order, and the same
 * sentence about the first bad line. */
#include "base/array.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "base/rows.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- numbers ------------------------------------------------------------------- */

struct counting {
    atomic_int calls[1000], in_others, open_to_signals;
    pthread_t caller;
};

static void count(void *arg, int i)
{
    struct counting *c = arg;

    c->calls[i]++;
    if (pthread_equal(pthread_self(), c->caller))
        return;
    sigset_t shut;
    pthread_sigmask(SIG_BLOCK, NULL, &shut);
    c->in_others++;
    c->open_to_signals += !sigismember(&shut, SIGUSR1);
}

/* And leaves signals to the caller. */
Test(parallel, does_each_once)
{
    static struct counting c;

    cr_assert(parallel_threads() >= 1 && parallel_threads() <= 8);
    for (int n_threads = 0; n_threads <= 20; n_threads++)
        for (int n = 0; n <= 1000; n = 3 * n + 1) {
            c = (struct counting){ .caller = pthread_self() };
            parallel_do(n_threads, n, count, &c);
            for (int i = 0; i < 1000; i++)
                cr_assert_eq(c.calls[i], i < n, "%d of %d by %d threads", i, n, n_threads);
            cr_assert(n_threads > 1 || c.in_others == 0);
            cr_assert_eq(c.open_to_signals, 0);
        }
}

/* ---- rows ----------------------------------------------------------------------- */

/* What is kept of a row: its number. */
struct numbers {
    int *at;
    size_t n, cap;
};

static int make(const void *arg, void *piece, const struct json *row, struct err *err)
{
    struct numbers *p = piece;
    int64_t i;

    (void)arg;
    if (json_want_int(row, "i", &i, err))
        return err->code;
    return ARRAY_PUSH(p, (int)i) ? err_nomem(err) : 0;
}

/* A row may not be what the one before was. */
static int take(void *arg, void *piece, size_t k, struct err *err)
{
    struct numbers *all = arg, *p = piece;

    if (all->n > 0 && all->at[all->n - 1] == p->at[k])
        return err_set(err, ERR_FORMAT, "%d comes twice", p->at[k]);
    return ARRAY_PUSH(all, p->at[k]) ? err_nomem(err) : 0;
}

static void clear(void *piece)
{
    ((struct numbers *)piece)->n = 0;
}

static void release(void *piece)
{
    free(((struct numbers *)piece)->at);
}

static int visit(void *arg, const struct json *row, struct err *err)
{
    struct numbers one = { 0 };
    int code = make(NULL, &one, row, err) ? err->code : take(arg, &one, 0, err);

    release(&one);
    return code;
}

/* Reads a text by so many threads, in pieces of so many bytes; 0 threads: row by row. Says what came of it. */
static char *outcome(const struct buf *text, int n_threads, size_t bytes)
{
    struct rows_bytes given = { "text", text->at, text->n };
    struct numbers all = { 0 };
    struct rows_work work = {
        make, take, clear, release, sizeof(struct numbers), &all, .text = bytes, .n_threads = n_threads
    };
    struct buf said = { 0 };
    struct rows_in in;
    struct err err;

    cr_assert_eq(rows_open_bytes(&in, &given, "things", &err), 0, "%s", err.msg);
    int code = n_threads ? rows_share(&in, &work, &err) : rows_rest(&in, visit, &all, &err);
    for (size_t i = 0; i < all.n; i++)
        buf_printf(&said, "%d ", all.at[i]);
    if (code)
        buf_printf(&said, "%d: %s", code, err.msg);
    else
        buf_printf(&said, "0: %lld rows, line %lld", (long long)in.n_rows, (long long)in.n_line);
    rows_close(&in);
    free(all.at);
    return buf_take(&said);
}

static void put_line(struct rng *r, struct buf *text, int i)
{
    static const char *const odd[] = { "\n",           " \t\r\n",      "{\"i\":\n",        "[1]\n",     "{\"i\":0.5}\n",
                                       "{\"i\":-1}\n", "{\"i\":-1}\n", "{\"end\":true}\n", "\\\\u0000", "{} {}\n" };
    bool blank = rng_below(r, 6) == 0;

    if (rng_below(r, 60) == 0)
        buf_adds(text, odd[rng_below(r, 10)]);
    else if (blank)
        buf_adds(text, odd[rng_below(r, 2)]);
    else
        buf_printf(text, "{\"i\":%d,\"text\":\"%.*s\"}\n", i, (int)rng_below(r, 40),
                   "0123456789012345678901234567890123456789");
}

static void put_end(struct rng *r, struct buf *text, int n)
{
    static const char *const after[] = { "", "\n \n", "{\"i\":1}\n", "x", "{\"end\":true,\"rows\":3}\n", "\n\n[\n" };

    if (rng_below(r, 8) == 0)
        return;
    buf_printf(text, "{\"end\":true,\"rows\":%d}%s", n, rng_below(r, 4) ? "\n" : "");
    for (uint64_t k = rng_below(r, 3) ? 0 : rng_below(r, 60); k > 0; k--)
        buf_adds(text, "\n");
    buf_adds(text, after[rng_below(r, 4) ? 0 : rng_below(r, 6)]);
}

Test(rows_share, is_what_one_thread_reads)
{
    enum { ROUNDS = 600 };
    struct rng r = rng_new(1);
    struct buf text = { 0 };
    int good = 0;

    for (int round = 0; round < ROUNDS; round++) {
        buf_clear(&text);
        buf_adds(&text, "{\"evp\":\"things\",\"version\":1}\n");
        int lines = (int)rng_below(&r, 120), n = 0;
        for (int i = 0; i < lines; i++) {
            size_t before = text.n;
            put_line(&r, &text, i);
            n += text.n > before + 9; /* the end line says the truth, mostly */
        }
        put_end(&r, &text, n - (rng_below(&r, 9) == 0));
        char *want = outcome(&text, 0, 0);
        good += strstr(want, " rows, ") != NULL;
        for (int n_threads = 1; n_threads <= 8; n_threads++) {
            char *got = outcome(&text, n_threads, 1 + rng_below(&r, 90));
            cr_assert_str_eq(got, want, "by %d threads:\n%s", n_threads, buf_str(&text));
            free(got);
        }
        free(want);
    }
    cr_assert(good > ROUNDS / 20 && good < ROUNDS / 2, "%d", good);
    buf_release(&text);
}

/* A file in pieces as they are read in earnest, digest and all; then with its last bytes gone, and changed. */
Test(rows_share, reads_files_of_many_rounds)
{
    enum { N = 120000 }; /* 20 MB */
    struct buf text = { 0 };
    char want[64];

    buf_adds(&text, "{\"evp\":\"things\",\"version\":1}\n");
    for (int i = 0; i < N; i++)
        buf_printf(&text, "{\"i\":%d,\"text\":\"%0150d\"}\n", i, i);
    size_t end = text.n;
    buf_printf(&text, "{\"end\":true,\"rows\":%d}\n", N);
    struct numbers all = { 0 };
    struct rows_work work = { make, take, clear, release, sizeof(struct numbers), &all, .n_threads = 3 };
    struct rows_in in;
    struct err err;
    for (int cut = 0; cut <= 1; cut++) {
        struct digest *digest = digest_new(&err);
        char is[DIGEST_HEX], whole[DIGEST_HEX], path[] = "/tmp/evp-rows-XXXXXX";
        close(mkstemp(path));
        all.n = 0;
        cr_assert_eq(file_write(path, text.at, cut ? end : text.n, &err), 0);
        cr_assert_eq(rows_open_hashed(&in, path, "things", digest, &err), 0);
        cr_assert_eq(rows_share(&in, &work, &err), cut ? ERR_FORMAT : 0, "%s", err.msg);
        digest_end(digest, is);
        cr_assert_eq(digest_file(path, whole, &err), 0);
        cr_assert_str_eq(is, whole);
        cr_assert_eq(all.n, N);
        for (int i = 0; i < N; i++)
            cr_assert_eq(all.at[i], i);
        rows_close(&in);
        unlink(path);
    }
    memcpy(strstr(text.at + text.n / 2, "\"i\""), "\"j\"", 3);
    char *said = outcome(&text, 4, 0);
    snprintf(want, sizeof(want), "field 'i' is missing");
    cr_assert(strstr(said, want) && strstr(said, "text line "), "%s", said + strlen(said) - 60);
    char *alone = outcome(&text, 0, 0);
    cr_assert_str_eq(said, alone);
    free(said);
    free(alone);
    free(all.at);
    buf_release(&text);
}

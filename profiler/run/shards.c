/* shards.c - FILE and its folder of shards. shards_read() reads all of them into one table. shards_put() writes one
 * shard under a new name. shards_finish() reads everything again, with the new shards, and unites it. The lock is
 * flock() on the folder, so it ends with the process. It is taken before anything is read, so the files do not change
 * until the end. */
#include "profiler/run/shards.h"

#include "profiler/run/unvisited.h"

#include "base/digest.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SHARDS_MAX = 999 }; // per context; each after the first comes from a resumed run

/* HASH.h5 is the first shard of a context, HASH-2.h5 the next. Returns the number; 0: not the name of a shard. */
static int shard_number(const char *name)
{
    const char *digit = name + XXH3_HEX; // the one after "HASH-"
    size_t n = strlen(name);
    int number = 0;

    if (n < XXH3_HEX - 1 + 3 || strcmp(name + n - 3, ".h5") != 0)
        return 0;
    if (n == XXH3_HEX - 1 + 3)
        return 1;
    if (digit[-1] != '-' || *digit == '0' || n > XXH3_HEX + 3 + 3)
        return 0;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        number = 10 * number + (*digit - '0');
    return digit == name + n - 3 && number > 1 ? number : 0;
}

/* All other files in the folder come from interrupted writes. */
static bool is_shard(const char *name)
{
    return shard_number(name) > 0;
}

static int only_shards(const struct dirent *entry)
{
    return is_shard(entry->d_name);
}

static int only_rests(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !is_shard(entry->d_name);
}

static int only_files(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void names_free(struct dirent **name, int n)
{
    for (int i = 0; i < n; i++)
        free(name[i]);
    free(name);
}

/* Orders shards by context, then by time of writing. */
static int by_shard(const struct dirent **a, const struct dirent **b)
{
    int order = memcmp((*a)->d_name, (*b)->d_name, XXH3_HEX - 1);

    return order ? order : shard_number((*a)->d_name) - shard_number((*b)->d_name);
}

/* The path for a new shard, freed by the caller; NULL with an error. */
static char *new_shard(const struct shards *s, const char *context, struct err *err)
{
    char hash[XXH3_HEX], name[XXH3_HEX + 16];

    digest_xxh3_hex(context, strlen(context), hash);
    for (int number = 1; number <= SHARDS_MAX; number++) {
        snprintf(name, sizeof(name), number > 1 ? "%s-%d.h5" : "%s.h5", hash, number);
        char *path = file_join(s->dir, name);
        if (!path)
            err_nomem(err);
        if (!path || !file_exists(path))
            return path;
        free(path);
    }
    err_set(err, ERR_FAIL, "context '%s' already has %d shards in '%s'", context, SHARDS_MAX, s->dir);
    return NULL;
}

/* ---- reading --------------------------------------------------------------- */

static int add_table(const struct shards *s, struct tables *to, const char *path, struct err *err)
{
    char text[TABLE_DIFFERENCE];

    if (tables_read(to, path, err))
        return err->code;
    struct table_made made = table_made(&to->at[to->n - 1]);
    const char *how = table_made_difference(text, &made, &s->made);
    return how ? err_set(err, ERR_FORMAT, "'%s' was made with %s; --overwrite replaces it", path, how) : 0;
}

static int read_shards(const struct shards *s, struct tables *to, struct dirent **name, int n, struct err *err)
{
    if (s->has_file && add_table(s, to, s->path, err))
        return err->code;
    for (int i = 0; i < n; i++) {
        char *path = file_join(s->dir, name[i]->d_name);
        int code = path ? add_table(s, to, path, err) : err_nomem(err);
        free(path);
        if (code)
            return code;
    }
    return 0;
}

/* Reads FILE and all shards, always in the same order, so that the same shards give the same table. */
static int read_all(const struct shards *s, struct tables *to, struct err *err)
{
    struct dirent **name = NULL;
    int n = scandir(s->dir, &name, only_shards, by_shard);

    if (n < 0 && errno != ENOENT)
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", s->dir, strerror(errno));
    int code = read_shards(s, to, name, n > 0 ? n : 0, err);
    names_free(name, n);
    return code;
}

/* The amount of data in a table. Anything that uniting adds makes it larger. */
static int64_t amount(const struct table *t)
{
    int64_t n = (int64_t)t->n_contexts + t->n_configs + t->n_questions;

    for (size_t i = 0; i < table_n_cells(t); i++)
        n += t->cell_bytes[i] >= 0;
    for (size_t i = 0; i < table_n_answers(t); i++)
        n += t->answer_n_tokens[i] >= 0;
    for (int q = 0; q < t->n_questions; q++)
        n += t->sampled_n_tokens[q] >= 0;
    return n;
}

static int open_tables(struct shards *s, struct err *err)
{
    struct tables found = { 0 };
    int code = read_all(s, &found, err);

    if (!code && found.n > 0)
        code = tables_unite(&s->have, &found, err);
    if (!code && found.n > 0)
        s->fresh = !s->has_file || amount(&s->have) > amount(&found.at[0]);
    tables_release(&found);
    return code ? code : table_rows_add(&s->rows, &s->have, err);
}

/* Does the opened folder still have this name? Another process removes it when it finishes. */
static bool is_there(const struct shards *s)
{
    struct stat held, there;

    return !fstat(s->lock, &held) && !stat(s->dir, &there) && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

/* A child of a run that was killed holds the lock for a moment: it is waited for, up to a second. */
static int lock_folder(struct shards *s, struct err *err)
{
    enum { TRIES = 10 };

    for (int tries = 0;;) {
        if (file_mkdir(s->dir, err))
            return err->code;
        s->lock = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->lock < 0 && errno == ENOENT)
            continue;
        if (s->lock < 0)
            return err_set(err, ERR_IO, "cannot open folder '%s': %s", s->dir, strerror(errno));
        int why = flock(s->lock, LOCK_EX | LOCK_NB) ? errno : 0;
        bool there = is_there(s);
        if (!why && there)
            return 0;
        close(s->lock);
        s->lock = -1;
        if (why == EWOULDBLOCK && there && tries++ == TRIES)
            return err_set(err, ERR_IO, "another process is writing '%s'", s->path);
        if (why == EWOULDBLOCK && there)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000000 / TRIES }, NULL);
        if (why && why != EWOULDBLOCK)
            return err_set(err, ERR_IO, "cannot lock folder '%s': %s", s->dir, strerror(why));
    }
}

int shards_open(struct shards *s, const char *path, enum shards_use use, struct err *err)
{
    struct buf dir = { 0 };

    buf_printf(&dir, "%s.d", path);
    *s = (struct shards){ .path = strdup(path), .dir = buf_take(&dir), .lock = -1 };
    int code = s->path && s->dir ? 0 : err_nomem(err);
    if (!code && use == SHARDS_WRITE)
        code = lock_folder(s, err);
    if (code)
        shards_close(s);
    return code;
}

bool shards_are_new(const struct shards *s)
{
    struct dirent **name = NULL;
    int n = scandir(s->dir, &name, only_shards, NULL);

    names_free(name, n);
    return n <= 0 && !file_exists(s->path);
}

int shards_read(struct shards *s, const struct table_made *made, enum shards_old old, struct err *err)
{
    s->made = *made;
    s->old = old;
    s->has_file = old == SHARDS_EXTEND && file_exists(s->path);
    return old == SHARDS_EXTEND ? open_tables(s, err) : 0;
}

/* Unlocks the folder, and removes it if it is empty. */
static void unlock(struct shards *s)
{
    if (s->dir && s->lock >= 0) {
        rmdir(s->dir);
        close(s->lock);
    }
    s->lock = -1;
}

void shards_close(struct shards *s)
{
    unlock(s);
    free(s->path);
    free(s->dir);
    table_release(&s->have);
    table_rows_release(&s->rows);
    *s = (struct shards){ .lock = -1 };
}

/* ---- queries --------------------------------------------------------------- */

static int row_of(const struct map *map, const char *name)
{
    return map_find(map, name, strlen(name));
}

bool shards_has(const struct shards *s, const char *context, const char *config, const char *question)
{
    const struct table *t = &s->have;
    int c = row_of(&s->rows.contexts, context), v = row_of(&s->rows.configs, config);
    int q = row_of(&s->rows.questions, question);

    if (c < 0 || v < 0 || q < 0)
        return false;
    return t->cell_bytes[table_cell(t, c, v)] >= 0 && t->answer_n_tokens[table_answer(t, q, v)] >= 0;
}

bool shards_has_decode_s(const struct shards *s, const char *context, const char *config)
{
    int c = row_of(&s->rows.contexts, context), v = row_of(&s->rows.configs, config);

    return c >= 0 && v >= 0 && !isnan(s->have.decode_s[0][table_cell(&s->have, c, v)]);
}

int shards_prefix(const struct shards *s, const char *context, const struct tokens *ids, int *n, struct err *err)
{
    int c = row_of(&s->rows.contexts, context);
    int64_t stored = c < 0 ? 0 : s->have.n_tokens[c];
    char digest[DIGEST_HEX];

    *n = 0;
    if (stored < 1 || stored > ids->n)
        return 0;
    if (digest_tokens(ids->at, (int)stored, digest, err))
        return err->code;
    *n = strcmp(digest, s->have.context_token_digest[c]) == 0 ? (int)stored : 0;
    return 0;
}

int shards_check_context(const struct shards *s, const char *context, const char *token_digest, struct err *err)
{
    int c = row_of(&s->rows.contexts, context);

    if (c < 0 || strcmp(s->have.context_token_digest[c], token_digest) == 0)
        return 0;
    return err_set(err, ERR_FORMAT, "context '%s' has another text in '%s'; --overwrite replaces it", context, s->path);
}

int shards_check_question(const struct shards *s, const char *question, const char *context, const char *text,
                          struct err *err)
{
    int q = row_of(&s->rows.questions, question);

    if (q < 0 || (strcmp(s->have.question_text[q], text) == 0 &&
                  strcmp(s->have.context_id[s->have.question_context[q]], context) == 0))
        return 0;
    return err_set(err, ERR_FORMAT, "question '%s' has another text or context in '%s'; --overwrite replaces it",
                   question, s->path);
}

/* ---- writing ------------------------------------------------------------------- */

/* Removes the files in the folder that `which` selects. */
static int remove_files(const struct shards *s, int (*which)(const struct dirent *), struct err *err)
{
    struct dirent **name = NULL;
    int n = scandir(s->dir, &name, which, NULL), code = 0;

    if (n < 0)
        return err_set(err, ERR_IO, "cannot open folder '%s': %s", s->dir, strerror(errno));
    for (int i = 0; i < n && !code; i++)
        if (unlinkat(s->lock, name[i]->d_name, 0))
            code = err_set(err, ERR_IO, "cannot remove '%s/%s': %s", s->dir, name[i]->d_name, strerror(errno));
    names_free(name, n);
    return code;
}

int shards_set_made(struct shards *s, const struct table_made *made, struct err *err)
{
    char text[TABLE_DIFFERENCE];
    struct table_made have = table_made(&s->have);
    const char *how = s->have.n_contexts ? table_made_difference(text, &have, made) : NULL;

    if (how)
        return err_set(err, ERR_FORMAT, "'%s' was made with %s; --overwrite replaces it", s->path, how);
    s->made = *made;
    return 0;
}

int shards_begin(struct shards *s, struct err *err)
{
    return remove_files(s, s->old == SHARDS_OVERWRITE ? only_files : only_rests, err);
}

int shards_put(struct shards *s, const struct table *result, struct err *err)
{
    char *path = new_shard(s, result->context_id[0], err);
    int code = path ? table_write(result, path, err) : err->code;

    if (!code)
        s->fresh = true;
    free(path);
    return code;
}

static int shard_rank(const struct table *t, const struct map *order)
{
    int at = row_of(order, t->context_id[0]);

    return at < 0 ? order->n : at;
}

struct ranked {
    struct table table;
    int rank, at;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return x->rank != y->rank ? x->rank - y->rank : x->at - y->at;
}

/* Sorts shards by the order of their contexts; the first `fixed` tables stay first. */
static int sort_tables(struct tables *t, int fixed, const struct map *order, struct err *err)
{
    struct ranked *r = calloc((size_t)t->n + 1, sizeof(*r));

    if (!r)
        return err_nomem(err);
    for (int i = 0; i < t->n; i++)
        r[i] = (struct ranked){ .table = t->at[i], .rank = i < fixed ? -1 : shard_rank(&t->at[i], order), .at = i };
    qsort(r, (size_t)t->n, sizeof(*r), by_rank);
    for (int i = 0; i < t->n; i++)
        t->at[i] = r[i].table;
    free(r);
    return 0;
}

/* Do the shards have all contexts and configs of these rows? */
static bool has_rows(const struct shards *s, const struct table *rows)
{
    for (int c = 0; rows && c < rows->n_contexts; c++)
        if (row_of(&s->rows.contexts, rows->context_id[c]) < 0)
            return false;
    for (int v = 0; rows && v < rows->n_configs; v++)
        if (row_of(&s->rows.configs, rows->config_name[v]) < 0)
            return false;
    return true;
}

/* Unites the tables found, with the rows after them. */
static int unite_all(struct table *out, const struct tables *found, const struct shards_whole *whole, struct err *err)
{
    const struct table **each = calloc((size_t)found->n + 1, sizeof(*each));

    if (!each)
        return err_nomem(err);
    for (int i = 0; i < found->n; i++)
        each[i] = &found->at[i];
    each[found->n] = whole->rows;
    int code = table_unite(out, each, found->n + (whole->rows != NULL), err);
    free(each);
    if (!code && whole->rows)
        unvisited_sizes(out, whole->shape);
    return code;
}

static int write_whole(struct shards *s, const struct tables *found, const struct shards_whole *whole, struct err *err)
{
    struct table all = { 0 };
    char *path = file_join(s->dir, "whole");
    int code = path ? unite_all(&all, found, whole, err) : err_nomem(err);

    if (!code && whole->asked && table_asked_renew(&all, whole->asked, &s->n_forgotten, err) < 0)
        code = err->code;
    if (!code)
        code = table_set_text(&all.lineage, whole->lineage, err);
    if (!code)
        code = table_write(&all, path, err);
    if (!code)
        code = file_rename(path, s->path, err);
    table_release(&all);
    free(path);
    return code;
}

/* Is there anything to write? 0, 1, or an error. */
static int has_news(struct shards *s, const struct shards_whole *whole, struct err *err)
{
    if (s->fresh || !has_rows(s, whole->rows))
        return 1;
    return whole->asked && s->have.n_contexts ? table_asked_renew(&s->have, whole->asked, &s->n_forgotten, err) : 0;
}

/* Looks for FILE again: a process without a lock may have created or removed it. */
int shards_finish(struct shards *s, const struct shards_whole *whole, struct err *err)
{
    struct tables found = { 0 };

    s->has_file = s->old == SHARDS_EXTEND && file_exists(s->path);
    int news = has_news(s, whole, err), code = news > 0 ? read_all(s, &found, err) : news;
    if (!code && found.n > 0)
        code = sort_tables(&found, s->has_file, whole->order, err);
    if (!code && found.n > 0)
        code = write_whole(s, &found, whole, err);
    tables_release(&found);
    if (code || remove_files(s, only_files, err))
        return err->code;
    unlock(s);
    return 0;
}

/* model_digest.c - a digest that identifies a model: SHA-256 over weights and tokenizer, kept in a note.
 *
 * A note is text: the digest, then the state of the files it was made of. It is valid while the files have that state.
 * It is written beside the model or, if that folder is read-only, in the user's cache. The note beside the model has a
 * public format with sizes and modification times. A tool can set these, so the note must also be younger than the last
 * change of any of the files (ctime), which cannot be set. The note in the cache holds ctimes and inodes as well.
 *
 * Times of files have a resolution of up to two seconds. A file that changed in the last two seconds may change again
 * without a trace, so its digest is not noted yet; nor is the digest of a file that changes while it is read.
 */
#include "base/digest.h"
#include "base/parallel.h"
#include "engine/model/model_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NOTE_MAX = 1 << 20, TIME_STEP_S = 2, BLOCK = 1 << 24 }; // BLOCK: bytes between two looks at `stop`

/* ---- the files and their state ------------------------------------------ */

struct sources {
    const char **path; // (n): borrowed from the model; the last one of a folder is `tokenizer`
    char *tokenizer;   // the vocabulary file of a folder
    int n;
};

static int list_sources(struct sources *s, const struct model *m, struct err *err)
{
    s->path = calloc((size_t)m->n_shards + 1, sizeof(*s->path));
    if (!s->path)
        return err_nomem(err);
    if (!m->json)
        s->path[s->n++] = m->path;
    for (int i = 0; i < m->n_shards; i++)
        s->path[s->n++] = m->shard_path[i];
    if (!m->json)
        return 0;
    s->tokenizer = model_vocabulary_path(m->path);
    if (!s->tokenizer)
        return err_nomem(err);
    if (file_exists(s->tokenizer))
        s->path[s->n++] = s->tokenizer;
    return 0;
}

static void sources_release(struct sources *s)
{
    free(s->path);
    free(s->tokenizer);
}

/* The files' present state, as the two notes write it. */
struct state {
    struct buf beside;       // "SIZE MTIME_NS NAME" for each file
    struct buf cached;       // "SIZE MTIME_NS CTIME_NS INODE NAME" for each file
    struct timespec changed; // the last change of any file
};

static void state_release(struct state *s)
{
    buf_release(&s->beside);
    buf_release(&s->cached);
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static int describe(struct state *state, const struct sources *s, struct err *err)
{
    struct stat st;

    *state = (struct state){ 0 };
    for (int i = 0; i < s->n; i++) {
        if (stat(s->path[i], &st))
            return err_set(err, ERR_IO, "cannot open '%s': %s", s->path[i], strerror(errno));
        long long size = (long long)st.st_size, modified = (long long)st.st_mtim.tv_sec;
        buf_printf(&state->beside, "%lld %lld%09ld %s\n", size, modified, st.st_mtim.tv_nsec, file_name(s->path[i]));
        buf_printf(&state->cached, "%lld %lld%09ld %lld%09ld %llu %s\n", size, modified, st.st_mtim.tv_nsec,
                   (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec, (unsigned long long)st.st_ino,
                   file_name(s->path[i]));
        struct timespec last = is_later(st.st_mtim, st.st_ctim) ? st.st_mtim : st.st_ctim;
        if (is_later(last, state->changed))
            state->changed = last;
    }
    return buf_failed(&state->beside) || buf_failed(&state->cached) ? err_nomem(err) : 0;
}

/* ---- notes --------------------------------------------------------------- */

static char *note_beside(const struct model *m)
{
    struct buf note = { 0 };

    buf_printf(&note, m->json ? "%s/model.evp-digest" : "%s.evp-digest", m->path);
    return buf_take(&note);
}

/* The note in the user's cache, named by the model's canonical path and inode; NULL: no cache folder. */
static char *note_cached(const struct model *m)
{
    char name[XXH3_HEX], *path = realpath(m->path, NULL), *dir = file_cache_dir();
    struct buf key = { 0 }, note = { 0 };
    struct stat st;

    if (path && dir && dir[0] == '/' && stat(path, &st) == 0) {
        buf_printf(&key, "%llu %s", (unsigned long long)st.st_ino, path);
        if (!buf_failed(&key)) {
            digest_xxh3_hex(key.at, key.n, name);
            buf_printf(&note, "%s/digests/%s", dir, name);
        }
    }
    buf_release(&key);
    free(path);
    free(dir);
    return note.n ? buf_take(&note) : NULL;
}

/* Reads the digest from a note; false when the note is absent or describes another state. */
static bool read_note(const char *note, const struct buf *state, struct stat *st, char hex[DIGEST_HEX])
{
    struct buf text = { 0 };
    struct err ignored;

    bool found = stat(note, st) == 0 && S_ISREG(st->st_mode) && file_read(&text, note, NOTE_MAX, &ignored) == 0 &&
                 text.n == DIGEST_HEX + state->n && memcmp(text.at + DIGEST_HEX, state->at, state->n) == 0;
    if (found) {
        memcpy(hex, text.at, DIGEST_HEX);
        found = hex[DIGEST_HEX - 1] == '\n';
        hex[DIGEST_HEX - 1] = '\0';
        found = found && digest_is_hex(hex);
    }
    buf_release(&text);
    return found;
}

static bool remembered(const struct model *m, const struct state *state, char hex[DIGEST_HEX])
{
    struct stat st;
    char *note = note_beside(m);

    bool found = note && read_note(note, &state->beside, &st, hex) && is_later(st.st_mtim, state->changed);
    free(note);
    if (found)
        return true;
    note = note_cached(m);
    found = note && read_note(note, &state->cached, &st, hex);
    free(note);
    return found;
}

/* false where the note cannot be written. */
static bool write_note(const char *note, const struct buf *state, const char hex[DIGEST_HEX])
{
    struct buf text = { 0 };
    struct stat st;
    struct err ignored;

    buf_printf(&text, "%s\n%s", hex, buf_str(state));
    bool written = (stat(note, &st) != 0 || S_ISREG(st.st_mode)) && !buf_failed(&text) &&
                   file_write(note, text.at, text.n, &ignored) == 0;
    buf_release(&text);
    return written;
}

/* Writes the note if it can. If not, the digest is computed again next time. */
static void remember(const struct model *m, const struct state *state, const char hex[DIGEST_HEX])
{
    struct err ignored;
    char *note = note_beside(m);
    bool written = note && write_note(note, &state->beside, hex);

    free(note);
    if (written)
        return;
    note = note_cached(m);
    if (note) {
        char *name = strrchr(note, '/');
        *name = '\0';
        bool is_there = file_mkdir(note, &ignored) == 0;
        *name = '/';
        if (is_there)
            written = write_note(note, &state->cached, hex);
    }
    free(note);
}

/* ---- the digest ----------------------------------------------------------- */

/* Pages are forgotten block by block: the engine maps the same file, whose memory would count twice. */
static int add_file(struct digest *d, const char *path, const atomic_bool *stop, struct err *err)
{
    struct file_map map;

    if (file_map(&map, path, err))
        return err->code;
    for (size_t at = 0; at < map.n && !*stop; at += BLOCK) {
        digest_add(d, (const char *)map.at + at, map.n - at < BLOCK ? map.n - at : BLOCK);
        file_map_forget(&map);
    }
    file_unmap(&map);
    return *stop ? err_set(err, ERR_FAIL, "stopped") : 0;
}

static int compute(const struct sources *s, const atomic_bool *stop, char hex[DIGEST_HEX], struct err *err)
{
    struct digest *d = digest_new(err);

    for (int i = 0; d && i < s->n; i++)
        if (add_file(d, s->path[i], stop, err)) {
            digest_end(d, NULL);
            return err->code;
        }
    if (!d)
        return err->code;
    digest_end(d, hex);
    return 0;
}

/* Did the files stay the same while they were read, and would a change since then show in their times? */
static bool is_stable(const struct state *before, const struct sources *s, time_t now)
{
    struct state after;
    struct err ignored;

    bool same = describe(&after, s, &ignored) == 0 && after.cached.n == before->cached.n &&
                memcmp(after.cached.at, before->cached.at, after.cached.n) == 0;
    state_release(&after);
    return same && before->changed.tv_sec + TIME_STEP_S < now;
}

static int digest_until(const struct model *m, time_t now, const atomic_bool *stop, char hex[DIGEST_HEX],
                        struct err *err)
{
    struct sources s = { 0 };
    struct state state = { 0 };

    if (m->synthetic)
        return synthetic_digest(m, hex, err);
    int code = list_sources(&s, m, err);

    if (!code)
        code = describe(&state, &s, err);
    if (!code && !remembered(m, &state, hex)) {
        code = compute(&s, stop, hex, err);
        if (!code && is_stable(&state, &s, now))
            remember(m, &state, hex);
    }
    state_release(&state);
    sources_release(&s);
    return code;
}

int model_digest_at(const struct model *m, time_t now, char hex[DIGEST_HEX], struct err *err)
{
    const atomic_bool stop = false;

    return digest_until(m, now, &stop, hex, err);
}

int model_digest(const struct model *m, char hex[DIGEST_HEX], struct err *err)
{
    return model_digest_at(m, time(NULL), hex, err);
}

/* ---- beside the caller's work ---------------------------------------------- */

struct model_digesting {
    const struct model *model;
    struct parallel_task *task; // NULL: is done, or waits for its caller
    atomic_bool stop;
    bool done;
    char hex[DIGEST_HEX];
    struct err err; // code 0: none
};

static void *run_digest(void *arg)
{
    struct model_digesting *d = arg;

    d->err.code = digest_until(d->model, time(NULL), &d->stop, d->hex, &d->err);
    d->done = true;
    return NULL;
}

struct model_digesting *model_digest_begin(const struct model *m, struct err *err)
{
    struct model_digesting *d = calloc(1, sizeof(*d));

    if (!d) {
        err_nomem(err);
        return NULL;
    }
    d->model = m;
    d->task = parallel_begin(run_digest, d);
    return d;
}

int model_digest_wait(struct model_digesting *d, struct err *err)
{
    if (d->task)
        parallel_end(d->task);
    d->task = NULL;
    if (!d->done)
        run_digest(d);
    if (d->err.code)
        *err = d->err;
    return d->err.code;
}

const char *model_digest_hex(const struct model_digesting *d)
{
    return d->hex;
}

void model_digest_free(struct model_digesting *d)
{
    if (d && d->task) {
        d->stop = true;
        parallel_end(d->task);
    }
    free(d);
}

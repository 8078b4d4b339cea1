/* evp_find.c - the installed library's stores: finding a prefix and fetching its payload.
 *
 * A store has a snapshot of what is placed, which is read once and never changed. Every call counts itself as a user of
 * the snapshot it works with; evp_refresh() replaces the snapshot, and the last user of an old one frees it. So the
 * lock is held only to take and give back a snapshot, never while a file is read.
 */
#include "loader/libevp/evp.h"

#include "base/file.h"
#include "base/map.h"
#include "loader/formats/manifest.h"
#include "loader/formats/stored.h"
#include "loader/libevp/evp_error.h"
#include "loader/store/tier_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(((struct evp_prefix *)0)->config) >= MANIFEST_CONFIG, "a config fits");
_Static_assert(sizeof(((struct evp_prefix *)0)->tier) >= TIER_NAME, "a tier's name fits");

/* Identifies the file that was read; a file that replaced it has another inode. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec time;
};

struct snapshot {
    int users; // under the store's lock
    struct manifest header;
    struct stamp manifest, index[TIER_MAX];
    struct entries in;  // live ones, tier by tier
    struct map digests; // token_digest -> index in `best`
    int *best;          // (digests.n) the entry in the fastest tier: an index in `in`
    int32_t *length;    // (n_lengths) different n_tokens, rising
    int n_lengths;
};

struct evp_store {
    pthread_mutex_t lock; // for `now` and the users of every snapshot
    struct snapshot *now;
    char *path;
};

/* ---- snapshots --------------------------------------------------------------- */

static void snapshot_free(struct snapshot *s)
{
    if (!s)
        return;
    manifest_release(&s->header);
    entries_release(&s->in);
    map_release(&s->digests);
    free(s->best);
    free(s->length);
    free(s);
}

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    if (!path || stat(path, &st))
        return (struct stamp){ 0 };
    return (struct stamp){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
}

static struct stamp stamp_index(const struct tier *tier)
{
    char *path = tier_store_index_path(tier->uri);
    struct stamp stamp = stamp_of(path);

    free(path);
    return stamp;
}

static bool stamp_same(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->time.tv_sec == b->time.tv_sec &&
           a->time.tv_nsec == b->time.tv_nsec;
}

/* Is the entry placed, and of the manifest's model? */
static bool is_wanted(const struct snapshot *s, const struct entry *e)
{
    return !e->spare && strcmp(e->model_digest, s->header.model_digest) == 0;
}

static int read_tier(struct snapshot *s, int tier, struct err *err)
{
    const struct tier *t = &s->header.tiers.at[tier];
    struct entries in;
    int code = 0;

    if (!tier_is_folder(t))
        return 0;
    s->index[tier] = stamp_index(t);
    if (tier_store_read_index(&in, t->uri, err))
        return err_wrap(err, "tier '%s'", t->name);
    for (int i = 0; i < in.n && !code; i++) {
        if (!is_wanted(s, &in.at[i]))
            continue;
        in.at[i].tier = tier;
        code = entries_add(&s->in, &in.at[i], err); /* takes the entry over */
    }
    entries_release(&in);
    return code;
}

static int compare_lengths(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Fills digests, best and length. Within a tier, the last entry of a digest is the newest and counts. */
static int index_entries(struct snapshot *s, struct err *err)
{
    size_t n = (size_t)s->in.n + 1;

    s->best = malloc(n * sizeof(*s->best));
    s->length = malloc(n * sizeof(*s->length));
    if (!s->best || !s->length)
        return err_nomem(err);
    for (int i = 0; i < s->in.n; i++) {
        const struct entry *e = &s->in.at[i];
        bool added;
        int at = map_add(&s->digests, e->token_digest, DIGEST_HEX - 1, &added);
        if (at < 0)
            return err_nomem(err);
        if (added || s->in.at[s->best[at]].tier == e->tier)
            s->best[at] = i;
        s->length[i] = (int32_t)e->n_tokens;
    }
    qsort(s->length, (size_t)s->in.n, sizeof(*s->length), compare_lengths);
    for (int i = 0; i < s->in.n; i++)
        if (i == 0 || s->length[i] != s->length[s->n_lengths - 1])
            s->length[s->n_lengths++] = s->length[i];
    return 0;
}

static struct snapshot *snapshot_read(const char *path, struct err *err)
{
    struct snapshot *s = calloc(1, sizeof(*s));

    if (!s) {
        err_nomem(err);
        return NULL;
    }
    s->users = 1;
    s->manifest = stamp_of(path);
    int code = manifest_read_header(&s->header, path, err);
    for (int t = 0; t < s->header.tiers.n && !code; t++)
        code = read_tier(s, t, err);
    if (!code)
        code = index_entries(s, err);
    if (!code)
        return s;
    snapshot_free(s);
    return NULL;
}

static bool snapshot_is_current(const struct snapshot *s, const char *path)
{
    struct stamp stamp = stamp_of(path);
    bool same = stamp_same(&stamp, &s->manifest);

    for (int t = 0; t < s->header.tiers.n && same; t++) {
        const struct tier *tier = &s->header.tiers.at[t];
        if (!tier_is_folder(tier))
            continue;
        stamp = stamp_index(tier);
        same = stamp_same(&stamp, &s->index[t]);
    }
    return same;
}

/* ---- stores ------------------------------------------------------------------- */

static struct snapshot *take(struct evp_store *store)
{
    pthread_mutex_lock(&store->lock);
    struct snapshot *s = store->now;
    s->users++;
    pthread_mutex_unlock(&store->lock);
    return s;
}

static void give_back(struct evp_store *store, struct snapshot *s)
{
    pthread_mutex_lock(&store->lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&store->lock);
    if (last)
        snapshot_free(s);
}

int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error)
{
    struct evp_store *s = calloc(1, sizeof(*s));
    struct err err;

    *store = NULL;
    if (!s)
        return evp_error_set(error, EVP_MEMORY, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    s->path = strdup(manifest);
    if (!s->path)
        err_nomem(&err);
    else
        s->now = snapshot_read(s->path, &err);
    if (!s->now) {
        evp_close(s);
        return evp_error_from(error, &err, EVP_DAMAGED);
    }
    *store = s;
    return EVP_OK;
}

void evp_close(struct evp_store *store)
{
    if (!store)
        return;
    snapshot_free(store->now);
    pthread_mutex_destroy(&store->lock);
    free(store->path);
    free(store);
}

int evp_refresh(struct evp_store *store, struct evp_error *error)
{
    struct err err;
    struct snapshot *old = take(store);
    bool current = snapshot_is_current(old, store->path);

    give_back(store, old);
    if (current)
        return 0;
    struct snapshot *new = snapshot_read(store->path, &err);
    if (!new)
        return evp_error_from(error, &err, EVP_DAMAGED);
    pthread_mutex_lock(&store->lock);
    old = store->now;
    store->now = new;
    pthread_mutex_unlock(&store->lock);
    give_back(store, old);
    return 1;
}

/* ---- finding ------------------------------------------------------------------- */

static void describe(const struct snapshot *s, const struct entry *e, struct evp_prefix *prefix)
{
    *prefix = (struct evp_prefix){ .n_tokens = e->n_tokens, .size = (uint64_t)e->size };
    snprintf(prefix->config, sizeof(prefix->config), "%s", e->config);
    snprintf(prefix->tier, sizeof(prefix->tier), "%s", s->header.tiers.at[e->tier].name);
    memcpy(prefix->token_digest, e->token_digest, DIGEST_HEX);
    memcpy(prefix->checksum, e->checksum, XXH3_HEX);
}

/* One pass over the tokens: at every length that a placed context has, looks up the digest so far. The last hit is the
 * longest prefix. */
static int find_longest(const struct snapshot *s, const int32_t *tokens, size_t n, const struct entry **found,
                        struct err *err)
{
    struct digest *digest = digest_new(err);
    char hex[DIGEST_HEX];
    size_t done = 0;
    int code = 0;

    if (!digest)
        return err->code;
    for (int i = 0; i < s->n_lengths && (size_t)s->length[i] <= n && !code; i++) {
        digest_add_tokens(digest, tokens + done, (size_t)s->length[i] - done);
        done = (size_t)s->length[i];
        code = digest_peek(digest, hex, err);
        int at = code ? MAP_ABSENT : map_find(&s->digests, hex, DIGEST_HEX - 1);
        if (at >= 0 && s->in.at[s->best[at]].n_tokens == s->length[i])
            *found = &s->in.at[s->best[at]];
    }
    digest_end(digest, NULL);
    return code;
}

int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
             struct evp_error *error)
{
    struct snapshot *s = take(store);
    const struct entry *found = NULL;
    struct err err;
    int code = find_longest(s, tokens, n, &found, &err);

    if (found && !code)
        describe(s, found, prefix);
    give_back(store, s);
    return code ? evp_error_from(error, &err, EVP_DAMAGED) : found != NULL;
}

/* ---- fetching ------------------------------------------------------------------- */

/* Reads the whole of an open file, which must have n bytes. */
static int read_all(int fd, char *to, size_t n, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return err_set(err, ERR_IO, "cannot read: %s", strerror(errno));
    if ((uint64_t)st.st_size != n)
        return err_set(err, ERR_FORMAT, "has %lld bytes, not %zu", (long long)st.st_size, n);
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, to + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set(err, ERR_IO, "cannot read: %s", got ? strerror(errno) : "the file was cut");
        done += (size_t)got;
    }
    return 0;
}

enum { ABSENT = 1 };

/* Reads and verifies the file of an entry: 0, ABSENT, or an error. */
static int read_entry(const struct snapshot *s, const struct entry *e, void *buffer, struct err *err)
{
    char *path = file_join(s->header.tiers.at[e->tier].uri, e->file), checksum[XXH3_HEX];

    if (!path)
        return err_nomem(err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int code = fd >= 0           ? read_all(fd, buffer, (size_t)e->size, err)
               : errno == ENOENT ? ABSENT
                                 : err_set(err, ERR_IO, "cannot open: %s", strerror(errno));
    if (!code) {
        digest_xxh3_hex(buffer, (size_t)e->size, checksum);
        if (strcmp(checksum, e->checksum) != 0)
            code = err_set(err, ERR_FORMAT, "has checksum %s, not %s: it is damaged", checksum, e->checksum);
    }
    if (code < 0)
        err_wrap(err, "'%s'", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return code;
}

/* Looks for the payload in every tier. */
static int read_anywhere(const struct snapshot *s, const struct evp_prefix *prefix, void *buffer, struct err *err)
{
    int code = ABSENT;

    for (int i = 0; i < s->in.n && code == ABSENT; i++) {
        const struct entry *e = &s->in.at[i];
        if ((uint64_t)e->size == prefix->size && strcmp(e->checksum, prefix->checksum) == 0 &&
            strcmp(e->token_digest, prefix->token_digest) == 0)
            code = read_entry(s, e, buffer, err);
    }
    return code;
}

/* Tries the entry that evp_find() would return first: it is nearly always the one. */
static int fetch_from(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, struct err *err)
{
    struct snapshot *s = take(store);
    int code = ABSENT, at = map_find(&s->digests, prefix->token_digest, strnlen(prefix->token_digest, DIGEST_HEX - 1));

    if (at >= 0) {
        const struct entry *e = &s->in.at[s->best[at]];
        if ((uint64_t)e->size == prefix->size && strcmp(e->checksum, prefix->checksum) == 0)
            code = read_entry(s, e, buffer, err);
    }
    if (code == ABSENT && at >= 0)
        code = read_anywhere(s, prefix, buffer, err);
    give_back(store, s);
    return code;
}

int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
              struct evp_error *error)
{
    struct err err;

    if (size < prefix->size)
        return evp_error_set(error, EVP_SMALL, "the buffer is smaller than the payload");
    int code = fetch_from(store, prefix, buffer, &err);
    if (code == ABSENT) { /* evp-load took it away meanwhile: read the indexes again */
        int changed = evp_refresh(store, error);
        if (changed < 0)
            return changed;
        code = fetch_from(store, prefix, buffer, &err);
    }
    if (code == ABSENT)
        return evp_error_set(error, EVP_GONE, "the prefix is no longer placed");
    return code ? evp_error_from(error, &err, EVP_DAMAGED) : EVP_OK;
}

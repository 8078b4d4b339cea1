/* load_verify.c - reads the payload of every goal that is not in place, in the payload folder or in another tier, and
 * chooses its source. A goal without a whole payload is left out. Several workers read; messages come in the order of
 * the goals.
 */
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include "base/array.h"
#include "base/file.h"
#include "loader/store/index.h"
#include "variants/packed_payload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHECKS = 1024 }; // goals to verify between two reports of progress, or this many bytes:
static const int64_t check_bytes = (int64_t)256 << 20;

void load_progress(const struct load *l, enum load_phase phase, int done, int total)
{
    if (l->o.progress)
        l->o.progress(l->o.arg, phase, done, total);
}

/* ---- in the payload folder ------------------------------------------------------------ */

static int compare_payload(const struct entry *want, const struct packed_payload *p, struct err *err)
{
    if (strcmp(p->config.name, want->config) != 0)
        return err_set(err, ERR_FORMAT, "has config '%s', not '%s'", p->config.name, want->config);
    if (strcmp(p->file.token_digest, want->token_digest) != 0 || p->file.n_tokens != want->n_tokens)
        return err_set(err, ERR_FORMAT, "was made from other tokens than the manifest's");
    if (*want->model_digest && strcmp(p->file.model_digest, want->model_digest) != 0)
        return err_set(err, ERR_FORMAT, "was made for another model than the manifest's");
    if (p->bytes != want->bytes)
        return err_set(err, ERR_FORMAT, "takes %lld bytes, but the manifest says %lld", (long long)p->bytes,
                       (long long)want->bytes);
    return 0;
}

int load_checksum(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    struct blob b = blob_of_file(fd);
    int code = blob_checksum(&b, size, checksum, err);
    close(fd);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

/* It is read into memory, not mapped: a mapped file that shrinks would end the program. */
int load_check_packed(struct entry *want, const char *path, int64_t size, struct err *err)
{
    struct packed_payload p;
    struct buf bytes = { 0 };

    int code = buf_reserve(&bytes, (size_t)size) ? file_read(&bytes, path, (size_t)size, err) : err_nomem(err);
    if (code) {
        buf_release(&bytes);
        return code;
    }
    code = packed_payload_parse(&p, bytes.at, bytes.n, PAYLOAD_WHOLE, err);
    if (!code) {
        code = compare_payload(want, &p, err);
        if (!code)
            code = index_prefix(p.file.tokens->at, want->n_tokens, want->prefix, err);
        packed_payload_close(&p);
    }
    if (!code) {
        want->size = (int64_t)bytes.n;
        digest_xxh3_hex(bytes.at, bytes.n, want->checksum);
    }
    buf_release(&bytes);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

/* ---- in the payload folder, under another name ------------------------------------------ */

static int key_of(struct buf *key, const char *token_digest, const char *config)
{
    buf_clear(key);
    buf_printf(key, "%s%s", token_digest, config);
    return buf_failed(key) ? ERR_NOMEM : 0;
}

/* Lists one file, unless it is no payload. */
static int list_packed(struct load *l, const char *name, struct buf *key, struct err *err)
{
    int64_t size;
    char *path = load_find_payload(l, name, &size); // a regular file, so it does not make the load wait
    struct packed_payload p;
    struct err ignored;
    bool first;

    int code = path ? packed_payload_open(&p, path, PAYLOAD_HEADER, &ignored) : ERR_FORMAT;
    free(path);
    if (code)
        return 0;
    code = key_of(key, p.file.token_digest, p.config.name);
    packed_payload_close(&p);
    if (code || map_add(&l->packed, buf_str(key), key->n, &first) < 0)
        return err_nomem(err);
    char *own = first ? strdup(name) : NULL;
    if (first && (!own || ARRAY_PUSH(&l->packed_name, own))) {
        free(own);
        return err_nomem(err);
    }
    return 0;
}

static int list_folder(struct load *l, struct err *err)
{
    DIR *dir = opendir(l->o.payloads);
    struct buf key = { 0 };
    int code = dir ? 0 : err_set(err, ERR_IO, "cannot read '%s': %s", l->o.payloads, strerror(errno));

    for (const struct dirent *d = dir ? readdir(dir) : NULL; d && !code; d = readdir(dir))
        code = *d->d_name == '.' ? 0 : list_packed(l, d->d_name, &key, err);
    if (dir)
        closedir(dir);
    buf_release(&key);
    return code;
}

/* The path of a goal's payload, which may be packed under the name of another id. */
static char *find_packed(const struct load *l, struct entry *want, int64_t *size)
{
    char *path = load_find_payload(l, want->payload, size);
    struct buf key = { 0 };
    int n = path || key_of(&key, want->token_digest, want->config) ? -1 : map_find(&l->packed, buf_str(&key), key.n);

    buf_release(&key);
    if (n < 0)
        return path;
    want->payload = l->packed_name.at[n];
    return load_find_payload(l, want->payload, size);
}

/* ---- in the tiers ------------------------------------------------------------------------ */

static void take_source(struct entry *want, const struct entry *e)
{
    want->size = e->size;
    memcpy(want->checksum, e->checksum, sizeof(e->checksum));
    memcpy(want->prefix, e->prefix, sizeof(e->prefix));
}

/* A copy in place whose context has the same tokens: it is not removed. */
static void find_in_twins(const struct load *l, struct goal *g, struct entry *want)
{
    struct cached wanted = entry_cached(want, NULL);
    struct err why;

    for (const struct goal *t = &l->goal[g->twin]; t != g && g->source < 0; t = &l->goal[t->twin]) {
        const struct copy *c = t->here < 0 ? NULL : &l->copy[t->here];
        struct cached has = entry_cached(&t->want, NULL);
        if (!c || !cached_same(&has, &wanted) || tier_store_check(&l->store[c->store], load_entry(l, c), &why))
            continue;
        g->source = t->here;
        take_source(want, load_entry(l, c));
    }
}

/* Makes the first whole copy in another tier the source of a goal. Other copies with different bytes lose their
 * goal. */
static void find_in_tiers(struct load *l, struct goal *g, struct entry *want)
{
    struct err why;

    g->source = ORDER_PAYLOADS;
    for (int i = g->copies; i >= 0; i = l->copy[i].next) {
        struct copy *c = &l->copy[i];
        const struct entry *e = load_entry(l, c);
        if (g->source >= 0) {
            if (strcmp(e->checksum, want->checksum) != 0)
                c->goal = -1;
            continue;
        }
        int code = tier_store_check(&l->store[c->store], e, &why);
        if (code) {
            c->damaged = code == ERR_FORMAT;
            c->goal = -1;
            continue;
        }
        g->source = i;
        take_source(want, e);
    }
    find_in_twins(l, g, want);
}

/* Finds the source of a goal. An error with a source: the file in the payload folder is not whole. */
static int find_source(struct load *l, struct goal *g, struct entry *want, struct err *err)
{
    int64_t size;
    char *path = find_packed(l, want, &size);
    int code = path ? load_check_packed(want, path, size, err)
               : !l->o.payloads
                   ? err_set(err, ERR_FORMAT,
                             "payload '%s' is needed, but no payload folder is given (--payloads; evp-pack makes it)",
                             want->payload)
                   : err_set(err, ERR_FORMAT, "there is no payload '%s' in '%s' (evp-pack makes it)", want->payload,
                             l->o.payloads);

    bool there = path && !g->spoilt;
    free(path);
    if (!code || code == ERR_NOMEM)
        return code;
    find_in_tiers(l, g, want);
    return g->source >= 0 && !there ? 0 : code;
}

/* Finds the source of a goal, and names its file. */
static int verify_goal(struct load *l, struct goal *g, struct err *err)
{
    uint8_t object[OBJECT_ID];
    int code = find_source(l, g, &g->want, err);

    if (code)
        err_wrap(err, "context '%.80s'", g->want.id);
    if (code && g->source < 0)
        return code;
    if (entry_object(&g->want, l->name_space, object, err)) {
        g->source = ORDER_PAYLOADS;
        return err->code;
    }
    object_file(object, g->file);
    g->want.file = g->file;
    return code;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* A batch of goals that several workers verify. */
struct checks {
    struct load *l;
    int n, goal[CHECKS];
    struct err said[CHECKS]; // messages; .code 0: the goal can be placed
};

static int verify_one(void *arg, int i, struct err *err)
{
    struct checks *c = arg;
    struct err why;
    int code = verify_goal(c->l, &c->l->goal[c->goal[i]], &why);

    c->said[i].code = 0;
    if (code)
        c->said[i] = why;
    return code == ERR_NOMEM ? err_nomem(err) : 0;
}

static void say_checks(const struct checks *c)
{
    struct load *l = c->l;

    for (int i = 0; i < c->n; i++) {
        struct goal *g = &l->goal[c->goal[i]];
        for (int k = g->copies; k >= 0; k = l->copy[k].next) {
            const struct entry *e = load_entry(l, &l->copy[k]);
            if (l->copy[k].damaged)
                l->o.warn("context '%s': '%s/%s' is damaged", e->id, l->store[l->copy[k].store].tier->uri, e->file);
        }
        if (c->said[i].code && g->source >= 0)
            l->o.warn("%s: it counts as absent", c->said[i].msg);
        else if (c->said[i].code)
            load_leave_out(l, g, &c->said[i]);
    }
}

static bool is_packed(const struct load *l, const struct goal *g)
{
    int64_t size;
    char *path = load_find_payload(l, g->want.payload, &size);
    bool is = path;

    free(path);
    return is;
}

static bool waits(const struct goal *g)
{
    return g->here < 0 && !g->left;
}

/* Takes the goals from number `first` that are not in place, up to a number of bytes; returns the number after them. */
static int take_checks(struct checks *c, int first)
{
    const struct load *l = c->l;
    int64_t bytes = 0;
    int i = first;

    for (c->n = 0; i < l->n_goals && c->n < CHECKS && bytes < check_bytes; i++)
        if (waits(&l->goal[i])) {
            c->goal[c->n++] = i;
            int64_t more = l->goal[i].want.bytes;
            bytes += more < check_bytes ? more : check_bytes;
        }
    return i;
}

static int verify_all(struct checks *c, int n, struct err *err)
{
    struct load *l = c->l;

    load_progress(l, LOAD_CHECKS, 0, n);
    for (int i = 0, done = 0; done < n; done += c->n) {
        i = take_checks(c, i);
        if (load_share(&(struct load_work){ verify_one, c, c->n, l->o.jobs }, err))
            return err->code;
        say_checks(c);
        load_progress(l, LOAD_CHECKS, done + c->n, n);
    }
    return 0;
}

int load_verify(struct load *l, struct err *err)
{
    int n = 0, n_lacking = 0;

    for (int i = 0; i < l->n_goals; i++) {
        n += waits(&l->goal[i]);
        n_lacking += waits(&l->goal[i]) && l->goal[i].copies < 0 && !is_packed(l, &l->goal[i]);
    }
    if (!n)
        return 0;
    if (l->o.payloads && !file_is_dir(l->o.payloads))
        return err_set(err, ERR_IO, "there is no folder '%s'; evp-pack makes it", l->o.payloads);
    if (l->o.payloads && n_lacking && list_folder(l, err))
        return err->code;
    struct checks *c = malloc(sizeof(*c));
    if (!c)
        return err_nomem(err);
    c->l = l;
    int code = verify_all(c, n, err);
    free(c);
    return code;
}

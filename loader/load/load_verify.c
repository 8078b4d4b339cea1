/* load_verify.c - reads the payload of every goal that is not in place, in the payload folder or in another tier, and
 * chooses its source. Nothing changes before all of them are known to be whole. Several workers read; messages come in
 * the order of the goals.
 */
#include "loader/load/load_internal.h"
#include "loader/load/load_work.h"

#include "base/file.h"
#include "loader/store/index.h"
#include "methods/packed_payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MISSING_SAID = 10 }; // missing payloads to name one by one
enum { CHECKS = 1024 };     // goals to verify between two reports of progress, or this many bytes:
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

static int checksum_of(const char *path, int64_t *size, char checksum[XXH3_HEX], struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    struct blob b = blob_of_file(fd);
    int code = blob_checksum(&b, size, checksum, err);
    close(fd);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

/* For a rollback, which knows size and checksum. */
static int check_before(const struct entry *want, const char *path, struct err *err)
{
    char checksum[XXH3_HEX];
    int64_t size;

    if (checksum_of(path, &size, checksum, err))
        return err->code;
    return size == want->size && strcmp(checksum, want->checksum) == 0
               ? 0
               : err_set(err, ERR_FORMAT, "'%s' is not the file that was placed before", path);
}

/* Reads and checks the whole payload of a goal, and fills its entry. */
static int check_packed(struct entry *want, const char *path, struct err *err)
{
    struct packed_payload p;

    if (*want->checksum)
        return check_before(want, path, err);
    if (packed_payload_open(&p, path, PAYLOAD_WHOLE, err))
        return err->code;
    const struct file_map *file = &p.file.st.map;
    int code = compare_payload(want, &p, err);
    if (!code)
        code = index_prefix(p.file.tokens->at, want->n_tokens, want->prefix, err);
    if (!code) {
        want->size = (int64_t)file->n;
        digest_xxh3_hex(file->at, file->n, want->checksum);
    }
    packed_payload_close(&p);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

/* ---- in the tiers ------------------------------------------------------------------------ */

/* Makes the first whole copy in another tier the source of a goal. Other copies with different bytes lose their
 * goal. */
static void find_in_tiers(struct load *l, struct goal *g, struct entry *want)
{
    g->source = ORDER_PAYLOADS;
    for (int i = g->copies; i >= 0; i = l->copy[i].next) {
        struct copy *c = &l->copy[i];
        const struct entry *e = load_entry(l, c);
        if (g->source >= 0) {
            if (strcmp(e->checksum, want->checksum) != 0)
                c->goal = -1;
            continue;
        }
        if (!tier_store_has(&l->store[c->store], e, STORE_CONTENT)) {
            c->damaged = true;
            c->goal = -1;
            continue;
        }
        g->source = i;
        want->size = e->size;
        memcpy(want->checksum, e->checksum, sizeof(e->checksum));
        memcpy(want->prefix, e->prefix, sizeof(e->prefix));
    }
}

static int say_missing(const struct load *l, const char *payload, struct err *err)
{
    const char *folder = l->o.payloads;

    if (l->o.direction == LOAD_BACK)
        return folder
                   ? err_set(err, ERR_FAIL, "cannot roll back: '%s' is not whole in any tier or in '%s'", payload,
                             folder)
                   : err_set(
                         err, ERR_FAIL,
                         "cannot roll back: '%s' is not whole in any tier, and no payload folder is given (--payloads)",
                         payload);
    if (!folder)
        return err_set(err, ERR_FORMAT, "payload '%s' is needed, but no payload folder is given (--payloads)", payload);
    return err_set(err, ERR_FORMAT, "there is no payload '%s' in '%s'", payload, folder);
}

/* Finds the source of a goal. ERR_FORMAT or ERR_FAIL: there is none. */
static int find_source(struct load *l, struct goal *g, struct entry *want, struct err *err)
{
    int64_t size;
    char *path = load_find_payload(l, want->payload, &size);
    int code = path ? check_packed(want, path, err) : 0;
    bool packed = path && !code;

    free(path);
    if (packed || (path && l->o.direction == LOAD_FORWARD))
        return code;
    find_in_tiers(l, g, want); /* the payload folder may have a repacked payload, but a tier the old one */
    return g->source >= 0 ? 0 : say_missing(l, want->payload, err);
}

/* Finds the source of a goal, and names its file. */
static int verify_goal(struct load *l, struct goal *g, struct err *err)
{
    uint8_t object[OBJECT_ID];

    if (find_source(l, g, &g->want, err))
        return err_wrap(err, "context '%.80s'", g->want.id);
    if (entry_object(&g->want, l->name_space, object, err))
        return err->code;
    object_file(object, g->file);
    g->want.file = g->file;
    return 0;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* Goals that cannot be placed: the first MISSING_SAID are reported one by one, the rest are counted. */
struct missing {
    int n;
    struct err first;
};

static void add_missing(const struct load *l, struct missing *missing, const struct err *err)
{
    if (missing->n == 0)
        missing->first = *err;
    else if (missing->n < MISSING_SAID)
        l->o.warn("%s", err->msg);
    missing->n++;
}

static int end_missing(const struct missing *missing, struct err *err)
{
    *err = missing->first;
    if (missing->n > 1)
        err_set(err, missing->first.code, "%.350s; and %d more payload%s", missing->first.msg, missing->n - 1,
                missing->n == 2 ? "" : "s");
    return err->code;
}

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

static void say_checks(const struct checks *c, struct missing *missing)
{
    const struct load *l = c->l;

    for (int i = 0; i < c->n; i++) {
        for (int k = l->goal[c->goal[i]].copies; k >= 0; k = l->copy[k].next) {
            const struct entry *e = load_entry(l, &l->copy[k]);
            if (l->copy[k].damaged)
                l->o.warn("context '%s': '%s/%s' is damaged", e->id, l->store[l->copy[k].store].tier->uri, e->file);
        }
        if (c->said[i].code)
            add_missing(l, missing, &c->said[i]);
    }
}

/* Takes the goals from number `first` that are not in place, up to a number of bytes; returns the number after them. */
static int take_checks(struct checks *c, int first)
{
    const struct load *l = c->l;
    int64_t bytes = 0;
    int i = first;

    for (c->n = 0; i < l->n_goals && c->n < CHECKS && bytes < check_bytes; i++)
        if (l->goal[i].here < 0) {
            c->goal[c->n++] = i;
            int64_t more = l->goal[i].want.bytes;
            bytes += more < check_bytes ? more : check_bytes;
        }
    return i;
}

static int verify_all(struct checks *c, int n, struct err *err)
{
    struct missing missing = { 0 };
    struct load *l = c->l;

    load_progress(l, LOAD_CHECKS, 0, n);
    for (int i = 0, done = 0; done < n; done += c->n) {
        i = take_checks(c, i);
        if (load_share(&(struct load_work){ verify_one, c, c->n, l->o.jobs }, err))
            return err->code;
        say_checks(c, &missing);
        load_progress(l, LOAD_CHECKS, done + c->n, n);
    }
    return missing.n ? end_missing(&missing, err) : 0;
}

int load_verify(struct load *l, struct err *err)
{
    int n = 0;

    for (int i = 0; i < l->n_goals; i++)
        n += l->goal[i].here < 0;
    if (!n)
        return 0;
    if (l->o.payloads && !file_is_dir(l->o.payloads))
        return err_set(err, ERR_IO, "there is no folder '%s'", l->o.payloads);
    struct checks *c = malloc(sizeof(*c));
    if (!c)
        return err_nomem(err);
    c->l = l;
    int code = verify_all(c, n, err);
    free(c);
    return code;
}

/* load_verify.c - reads the payload of every goal that is not in its place, in the payload folder or in another tier,
 * and chooses where it comes from. Nothing is changed before all of them are known to be whole.
 */
#include "loader/load/load_internal.h"

#include "base/file.h"
#include "loader/index/index.h"
#include "methods/packed_payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MISSING_SAID = 10 }; // missing payloads that are named one by one

void load_progress(const struct load *l, enum load_phase phase, int done, int total)
{
    if (l->o.progress)
        l->o.progress(l->o.arg, phase, done, total);
}

/* ---- in the payload folder ------------------------------------------------------------ */

static int compare_payload(const struct goal *g, const struct packed_payload *p, struct err *err)
{
    const struct entry *want = &g->want;

    if (strcmp(p->config.name, want->config) != 0)
        return err_set(err, ERR_FORMAT, "has config '%s', not '%s'", p->config.name, want->config);
    if (strcmp(p->file.token_digest, want->token_digest) != 0 || p->file.n_tokens != want->n_tokens)
        return err_set(err, ERR_FORMAT, "was made of other tokens than the manifest says");
    if (*want->model_digest && strcmp(p->file.model_digest, want->model_digest) != 0)
        return err_set(err, ERR_FORMAT, "was made for another model than the manifest says");
    if (p->bytes != want->bytes)
        return err_set(err, ERR_FORMAT, "counts %lld bytes, the manifest %lld", (long long)p->bytes,
                       (long long)want->bytes);
    if (!p->file.tokens)
        return err_set(err, ERR_FORMAT, "is of version 1, without the tokens that readers find it by: pack it again");
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

/* Reads the payload of a goal whole, and sets what it will be in the tier. */
static int check_packed(const struct load *l, struct goal *g, const char *path, struct err *err)
{
    struct entry *want = &g->want;
    char checksum[XXH3_HEX];
    struct packed_payload p;
    int64_t size;

    if (checksum_of(path, &size, checksum, err))
        return err->code;
    if (*want->checksum) /* a rollback knows size and checksum already */
        return size == want->size && strcmp(checksum, want->checksum) == 0
                   ? 0
                   : err_set(err, ERR_FORMAT, "'%s' is not the file that was placed before", path);
    if (packed_payload_open(&p, path, PAYLOAD_WHOLE, err))
        return err->code;
    int code = compare_payload(g, &p, err);
    if (!code)
        code = index_prefix(p.file.tokens->at, want->n_tokens, want->prefix, err);
    packed_payload_close(&p);
    if (code)
        return err_wrap(err, "'%s'", path);
    want->size = size;
    memcpy(want->checksum, checksum, sizeof(checksum));
    return entry_set_file(want, l->name_space, err);
}

/* ---- in the tiers ------------------------------------------------------------------------ */

/* Makes a whole copy in another tier the source of a goal; a copy with other bytes than the source is none of it. */
static int find_in_tiers(struct load *l, struct goal *g, struct err *err)
{
    struct entry *want = &g->want;

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
            l->o.warn("context '%s': '%s/%s' is damaged", e->id, l->store[c->store].tier->uri, e->file);
            c->goal = -1;
            continue;
        }
        g->source = i;
        want->size = e->size;
        memcpy(want->checksum, e->checksum, sizeof(e->checksum));
        memcpy(want->prefix, e->prefix, sizeof(e->prefix));
        if (entry_set_file(want, l->name_space, err))
            return err->code;
    }
    return 0;
}

static int say_missing(const struct load *l, const struct goal *g, struct err *err)
{
    const char *folder = l->o.payloads;

    if (l->o.direction == LOAD_BACK)
        return folder
                   ? err_set(err, ERR_FAIL, "cannot roll back: '%s' is neither whole in a tier nor in '%s'", g->payload,
                             folder)
                   : err_set(err, ERR_FAIL,
                             "cannot roll back: '%s' is whole in no tier, and no payload folder is given (--payloads)",
                             g->payload);
    if (!folder)
        return err_set(err, ERR_FORMAT, "payload '%s' is needed, and no payload folder is given (--payloads)",
                       g->payload);
    return err_set(err, ERR_FORMAT, "there is no payload '%s' in '%s'", g->payload, folder);
}

/* Finds the source of a goal. ERR_FORMAT or ERR_FAIL: it has none. */
static int verify_goal(struct load *l, struct goal *g, struct err *err)
{
    int64_t size;
    char *path = load_find_payload(l, g->payload, &size);
    int code = path ? check_packed(l, g, path, err) : 0;
    bool packed = path && !code;

    free(path);
    if (packed || (path && l->o.direction == LOAD_FORWARD))
        return code ? err_wrap(err, "context '%.80s'", g->want.id) : 0;
    if (find_in_tiers(l, g, err)) /* before a rollback a payload may have been packed again; a tier may still have it */
        return err->code;
    if (g->source >= 0)
        return 0;
    say_missing(l, g, err);
    return err_wrap(err, "context '%.80s'", g->want.id);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* Goals that cannot be placed: each is told up to a number, then they are counted. */
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
        err_set(err, missing->first.code, "%.350s; so it is with %d payload%s more", missing->first.msg, missing->n - 1,
                missing->n == 2 ? "" : "s");
    return err->code;
}

int load_verify(struct load *l, struct err *err)
{
    struct missing missing = { 0 };
    int n = 0, done = 0;

    for (int i = 0; i < l->n_goals; i++)
        n += l->goal[i].here < 0;
    if (!n)
        return 0;
    if (l->o.payloads && !file_is_dir(l->o.payloads))
        return err_set(err, ERR_IO, "there is no folder '%s'", l->o.payloads);
    load_progress(l, LOAD_CHECKS, 0, n);
    for (int i = 0; i < l->n_goals; i++) {
        if (l->goal[i].here >= 0)
            continue;
        int code = verify_goal(l, &l->goal[i], err);
        if (code == ERR_NOMEM)
            return code;
        if (code)
            add_missing(l, &missing, err);
        load_progress(l, LOAD_CHECKS, ++done, n);
    }
    return missing.n ? end_missing(&missing, err) : 0;
}

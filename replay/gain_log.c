/* gain_log.c - takes the requests one by one. */
#include "replay/gain_log.h"

#include "base/array.h"
#include "base/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1 };

static uint64_t hash_key(uint64_t before, uint64_t id)
{
    const uint64_t bytes[] = { before, id };

    return digest_xxh3(bytes, sizeof(bytes));
}

/* Goes through the blocks of a prompt. *block: its last one, or -1. */
static int walk(struct gain_log *g, const struct request *r, int32_t *block, struct err *err)
{
    uint64_t key = digest_xxh3_seeded(buf_str(&r->model), r->model.n, r->apart); // others have nothing in common

    *block = -1;
    for (int i = 0; i < r->hash.n; i++) {
        key = hash_key(key, r->hash.at[i]);
        if (prefix_step(&g->tree, key, block, err))
            return err->code;
    }
    for (size_t i = 0; r->hash.n == 0 && i + PREFIX_CHUNK < r->bytes.n; i += PREFIX_CHUNK) {
        key = prefix_key(key, r->bytes.at + i);
        if (prefix_step(&g->tree, key, block, err))
            return err->code;
    }
    return 0;
}

/* Every prompt has the same chance to be in the sample (A. Waterman's reservoir; Knuth, The Art of Computer Programming
 * 2, 3.4.2, algorithm R). */
static void sample(struct gain_log *g, const struct request *r)
{
    int n = g->requests.n, at = n < GAIN_SAMPLE ? n : (int)rng_below(&g->rng, (uint64_t)n + 1);
    size_t begin = r->message.at[0], bytes = r->bytes.n - begin;

    if (at >= GAIN_SAMPLE)
        return;
    buf_clear(&g->sample[at]);
    buf_add(&g->sample[at], r->bytes.at + begin, bytes < GAIN_SAMPLE_BYTES ? bytes : GAIN_SAMPLE_BYTES);
}

static int take(void *arg, const struct request *r, struct err *err)
{
    struct gain_log *g = arg;
    struct gain_request q = { .at = r->time, .number = g->requests.n, .output = r->n_output };
    bool trace = r->hash.n > 0;
    int32_t block_units = trace ? r->block : PREFIX_CHUNK;

    if (g->requests.n > 0 && trace != g->traces)
        return err_set(err, ERR_FORMAT, "the logs hold prompts with texts and traces with hash ids; take one kind");
    if (g->requests.n > 0 && block_units != g->block_units)
        return err_set(err, ERR_FORMAT, "the traces have blocks of %d and of %d tokens; take those of one size",
                       g->block_units, block_units);
    g->traces = trace;
    g->block_units = block_units;
    q.units = trace ? r->n_tokens : (int64_t)r->bytes.n;
    g->units += q.units;
    g->n_timeless += isnan(q.at);
    if (isnan(q.at) && g->requests.n > 0)
        q.at = g->requests.at[g->requests.n - 1].at;
    if (!trace) {
        if (!r->opaque)
            sample(g, r);
        if (!stamps_take(&g->stamps, r->bytes.at, r->bytes.n))
            return err_nomem(err);
    }
    if (walk(g, r, &q.block, err))
        return err->code;
    return ARRAY_PUSH(&g->requests, q) ? err_nomem(err) : 0;
}

/* Those before the first time get that. */
static void time_first(struct gain_log *g)
{
    int first = 0;

    while (first < g->requests.n && isnan(g->requests.at[first].at))
        first++;
    for (int i = 0; i < first && first < g->requests.n; i++)
        g->requests.at[i].at = g->requests.at[first].at;
}

static int keep_parents(struct gain_log *g, struct err *err)
{
    g->n_blocks = g->tree.n;
    g->parent = malloc(((size_t)g->n_blocks + 1) * sizeof(*g->parent));
    if (!g->parent)
        return err_nomem(err);
    for (int i = 0; i < g->n_blocks; i++)
        g->parent[i] = g->tree.at[i].parent;
    prefix_tree_release(&g->tree);
    return 0;
}

/* A request that is not of a trace whose facts are looked for. */
static int stop(void *arg, const struct request *r, struct err *err)
{
    (void)arg, (void)r, (void)err;
    return TRACE_SEEN;
}

/* Looks at the first rows of traces: the tokens of their blocks, and the unit of their times. What cannot be read is an
 * error later. */
static int look(struct gain_log *g, struct requests *rq, struct err *err)
{
    struct trace_reading *t = &rq->line.trace;

    t->facts = &g->facts;
    int code = requests_look(rq, stop, NULL, err);
    t->facts = NULL;
    if (g->facts.n == 0)
        return code == ERR_NOMEM ? code : 0;
    t->block = trace_facts_block(&g->facts);
    t->found_unit = trace_facts_unit(&g->facts);
    return 0;
}

int gain_log_read(struct gain_log *g, struct requests *rq, struct err *err)
{
    g->rng = rng_new(SEED);
    rq->line.hashes = rq->line.bytes_suffice = true;
    if (look(g, rq, err))
        return err->code;
    if (requests_visit(rq, take, g, err))
        return err->code;
    if (g->requests.n == 0)
        return err_set(err, ERR_FORMAT, "none of the %lld requests is to a model of --dataset, the first is to '%s'",
                       (long long)rq->line.n_requests, rq->models.at[0].key);
    time_first(g);
    return keep_parents(g, err);
}

/* ---- without what changes in front ----------------------------------------- */

struct unstamped {
    struct gain_log *g;
    struct gain_log without;
    struct buf text;
    double blocks, blocks_now; // of all prompts
};

static int take_unstamped(void *arg, const struct request *r, struct err *err)
{
    struct unstamped *u = arg;
    struct gain_stamps *found = &u->g->stamped;
    struct request q = *r;
    size_t n_cut;
    struct prompt_stamp *stamp = stamps_cut(&u->g->stamps, r->bytes.at, r->bytes.n, &n_cut);
    int32_t block;

    buf_clear(&u->text);
    buf_add(&u->text, r->bytes.at, stamp ? stamp->begin : 0);
    if (stamp) {
        stamp->n++;
        found->n++;
        found->best = found->best && found->best->n >= stamp->n ? found->best : stamp;
    }
    buf_add(&u->text, r->bytes.at + u->text.n + n_cut, r->bytes.n - u->text.n - n_cut);
    if (buf_failed(&u->text))
        return err_nomem(err);
    q.bytes = u->text;
    u->blocks += (double)((q.bytes.n - 1) / PREFIX_CHUNK);
    u->blocks_now += (double)((r->bytes.n - 1) / PREFIX_CHUNK);
    return walk(&u->without, &q, &block, err);
}

int gain_log_stamps(struct gain_log *g, struct requests *rq, struct err *err)
{
    struct unstamped u = { .g = g };
    const double chunk = PREFIX_CHUNK / (double)g->units;

    if (!stamps_any(&g->stamps))
        return 0;
    int code = requests_look(rq, take_unstamped, &u, err);
    g->stamped.share = chunk * (u.blocks - u.without.tree.n);
    g->stamped.share_now = chunk * (u.blocks_now - g->n_blocks);
    prefix_tree_release(&u.without.tree);
    buf_release(&u.text);
    return code;
}

void gain_log_release(struct gain_log *g)
{
    free(g->requests.at);
    free(g->parent);
    for (int i = 0; i < GAIN_SAMPLE; i++)
        buf_release(&g->sample[i]);
    prefix_tree_release(&g->tree);
    stamps_release(&g->stamps);
    *g = (struct gain_log){ 0 };
}

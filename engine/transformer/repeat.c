/* repeat.c - the model repeats its context: how much attention each key of the context gets from it (NEED_REPEAT).
 *
 * The text is divided into chunks. For each one the model is asked to repeat it, and reads
 *
 *     the request | the end of the chat template | the chunk again        = the block, at positions T, T + 1, ...
 *
 * with the uncompressed cache before it. Only the scores are made of fewer keys: in every layer the block's queries
 * attend to the cache's first REPEAT_SINK keys, the chunk's keys and, causally, the block's own. A key of the chunk
 * gets the largest weight that any query of its group gives it.
 *
 * One store holds these keys in this order: sink, chunk, block. So the attention for the scores is that of a text whose
 * last tokens are the pass's own, and the hidden states' attention is that of a question over a variant.
 */
#include "engine/transformer/engine_internal.h"

#include "base/unconst.h"

#include <stdlib.h>
#include <string.h>

enum {
    REPEAT_CHUNK = 2048,
    REPEAT_SINK = 4,
    REPEAT_BEFORE = 8, // tokens before a chunk that the request quotes
    REPEAT_ASK = 256,  // most tokens of a block before its chunk
};

static const char FIRST[] = "\n\nRepeat the previous context exactly.",
                  LATER[] = "\n\nRepeat the part of the previous context exactly, starting with",
                  NO_TAIL[] = "\n"; // ends a request without a chat template

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* ---- in advance ---------------------------------------------------------- */

static size_t n_heads(const struct engine *e)
{
    return (size_t)e->config.n_layers * (size_t)e->config.n_kv_heads;
}

int repeat_positions(int n_tokens)
{
    return n_tokens + REPEAT_ASK + min(n_tokens, REPEAT_CHUNK);
}

int repeat_slots(int n_tokens)
{
    return REPEAT_SINK + REPEAT_ASK + 2 * min(n_tokens, REPEAT_CHUNK);
}

size_t repeat_bytes(const struct engine *e, int n_tokens)
{
    size_t slots = (size_t)repeat_slots(n_tokens);

    return kv_store_bytes(e, slots) + pool_size(n_heads(e) * slots * sizeof(float)) +
           pool_size(n_heads(e) * sizeof(struct kv_rows));
}

double repeat_flop(const struct engine *e, int n_tokens)
{
    double n = n_tokens, chunk = min(n_tokens, REPEAT_CHUNK), pair = model_pair_flop(&e->config);

    /* each token attends to the cache and to half of its block; scores cost as much as attention to their keys */
    return n * (model_token_flop(&e->config) + pair * (n + chunk / 2 + 1.5 * chunk));
}

/* ---- the request --------------------------------------------------------- */

struct repeat {
    struct session *session;
    const int32_t *ids; // (n)
    int n;
    struct tokens first, later, tail; // of the block
    struct tokens block;
    struct forward_job job;
    float *score; // (L * G, n)
};

/* The heads of the layers that methods see. */
static size_t n_scored(const struct repeat *r)
{
    const struct kv_shape *s = &r->session->forward.shape;

    return (size_t)s->n_layers * (size_t)s->n_kv_heads;
}

static void release(struct repeat *r)
{
    tokens_release(&r->first);
    tokens_release(&r->later);
    tokens_release(&r->tail);
    tokens_release(&r->block);
    free(unconst(r->job.table.host));
}

static int encode(struct repeat *r, const char *text, enum special special, struct tokens *out, struct err *err)
{
    return tokenizer_encode(r->session->engine->tokenizer, text_view_of(text), special, out, err);
}

static int encode_requests(struct repeat *r, struct err *err)
{
    const char *tail = tokenizer_tail(r->session->engine->tokenizer);

    if (encode(r, FIRST, SPECIAL_AS_TEXT, &r->first, err) || encode(r, LATER, SPECIAL_AS_TEXT, &r->later, err) ||
        encode(r, *tail ? tail : NO_TAIL, SPECIAL_PARSED, &r->tail, err))
        return err->code;
    int longest = (r->first.n > r->later.n ? r->first.n : r->later.n) + REPEAT_BEFORE + r->tail.n;
    if (longest > REPEAT_ASK)
        return err_set(err, ERR_FORMAT,
                       "the model's tokenizer makes %d tokens of the request to repeat a text, more than %d", longest,
                       REPEAT_ASK);
    return 0;
}

static int add_ids(struct tokens *to, const int32_t *ids, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (tokens_add(to, ids[i], err))
            return err->code;
    return 0;
}

/* The block that repeats tokens begin .. end - 1 of the context. */
static int make_block(struct repeat *r, int begin, int end, struct err *err)
{
    bool is_first = begin == r->session->full.n_head;
    const struct tokens *ask = is_first ? &r->first : &r->later;
    int before = is_first ? 0 : REPEAT_BEFORE;

    r->block.n = 0;
    if (add_ids(&r->block, ask->at, ask->n, err) || add_ids(&r->block, r->ids + begin - before, before, err) ||
        add_ids(&r->block, r->tail.at, r->tail.n, err) || add_ids(&r->block, r->ids + begin, end - begin, err))
        return err->code;
    return 0;
}

/* ---- the passes ---------------------------------------------------------- */

/* The scores, zero, and the memory for the passes. */
static int take_memory(struct repeat *r, struct err *err)
{
    struct session *s = r->session;
    struct engine *e = s->engine;
    size_t heads = n_heads(e), slots = (size_t)repeat_slots(r->n), bytes = heads * sizeof(struct kv_rows);
    struct kv_rows *host = malloc(bytes), *device;

    r->job = (struct forward_job){ .kind = ATTN_TEXT, .end = FORWARD_CACHE };
    r->job.table = (struct kv_table){ .host = host, .n_layers = e->config.n_layers };
    if (!host)
        return err_nomem(err);
    memcpy(host, s->rows, bytes);
    r->job.store = kv_store_take(&s->pool, e, slots, err);
    r->job.repeat_max = r->job.store.k ? pool_take(&s->pool, heads * slots * sizeof(float), err) : NULL;
    r->job.table.device = device = r->job.repeat_max ? pool_take(&s->pool, bytes, err) : NULL;
    if (!device)
        return err->code;
    e->backend->write(e->backend, device, host, bytes);
    return 0;
}

/* Writes zeros to n numbers of each scored head's row. */
static int clear_rows(struct repeat *r, float *rows, size_t n, struct err *err)
{
    struct engine *e = r->session->engine;
    void *zeros = calloc(n, sizeof(float));

    if (!zeros)
        return err_nomem(err);
    e->backend->repeat(e->backend, rows, n * sizeof(float), (int)n_scored(r), zeros, n * sizeof(float));
    free(zeros);
    return 0;
}

/* Copies the keys of the sink and of a chunk before the block's. */
static void copy_keys(const struct repeat *r, int sink, int begin, int end)
{
    const struct engine *e = r->session->engine;
    struct backend *be = e->backend;
    size_t row = (size_t)e->config.head_dim * dtype_size(be->dtype);

    for (size_t h = 0; h < n_heads(e); h++) {
        char *to = (char *)r->job.store.k + h * r->job.store.head_rows * row;
        const char *from = r->session->rows[h].k;
        be->copy(be, to, from, (size_t)sink * row);
        be->copy(be, to + (size_t)sink * row, from + (size_t)begin * row, (size_t)(end - begin) * row);
    }
}

static void keep_scores(const struct repeat *r, int sink, int begin, int end)
{
    struct backend *be = r->session->engine->backend;

    for (size_t h = 0; h < n_scored(r); h++)
        be->copy(be, r->score + h * (size_t)r->n + begin, r->job.repeat_max + h * r->job.store.head_rows + sink,
                 (size_t)(end - begin) * sizeof(float));
}

/* Tokens begin .. end - 1 of the context. */
static int repeat_chunk(struct repeat *r, int begin, int end, struct err *err)
{
    struct forward *f = &r->session->forward;
    int sink = min(REPEAT_SINK, begin), before = sink + end - begin;

    if (make_block(r, begin, end, err) || clear_rows(r, r->job.repeat_max, r->job.store.head_rows, err))
        return err->code;
    copy_keys(r, sink, begin, end);
    for (int i = 0, n; i < r->block.n; i += n) {
        n = min(r->block.n - i, f->pass.rows);
        pass_clear(&f->pass);
        pass_add(&f->pass,
                 &(struct pass_tokens){ .ids = r->block.at + i, .n = n, .position = r->n + i, .slot = before + i },
                 before);
        pass_share(&f->pass, 0, n, 0);
        forward_run(f, &r->job);
    }
    keep_scores(r, sink, begin, end);
    return f->engine->backend->sync(f->engine->backend, err);
}

static int run(struct repeat *r, struct err *err)
{
    struct kv_full *full = &r->session->full;

    if (encode_requests(r, err) || take_memory(r, err) || clear_rows(r, r->score, (size_t)r->n, err))
        return err->code;
    for (int begin = full->n_head, end; begin < r->n; begin = end) {
        end = min(begin + REPEAT_CHUNK, r->n);
        if (repeat_chunk(r, begin, end, err))
            return err->code;
    }
    return 0;
}

int session_repeat(struct session *s, const struct prefill *p, struct err *err)
{
    struct backend *be = s->engine->backend;
    struct repeat r = { .session = s, .ids = p->ids, .n = p->n };

    if (!(p->needs & NEED_REPEAT))
        return 0;
    if (repeat_positions(p->n) > s->engine->plan.max_positions)
        return err_set(err, ERR_NOMEM, "repeating the context takes %d positions, memory was planned for %d",
                       repeat_positions(p->n), s->engine->plan.max_positions);
    size_t before = pool_mark(&s->pool);
    r.score = pool_take(&s->pool, n_scored(&r) * (size_t)p->n * sizeof(float), err);
    size_t mark = pool_mark(&s->pool);
    double start = be->clock(be);
    int code = r.score ? run(&r, err) : err->code;
    pool_reset(&s->pool, code ? before : mark);
    release(&r);
    s->full.repeat_max = code ? NULL : r.score;
    s->full.repeat_s = be->clock(be) - start;
    return code;
}

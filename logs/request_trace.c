/* request_trace.c - a row of a trace: ids of blocks in place of text. */
#include "base/array.h"
#include "logs/request_internal.h"

#include <math.h>

/* A whole number of tokens from `min` on; -1: none. NULL: 0. */
static int32_t tokens_of(const struct json *number, int min)
{
    double n = number ? json_real(number) : 0;

    return n >= min && n <= REQUEST_TOKENS_MAX && n == floor(n) ? (int32_t)n : -1;
}

int request_read_trace(const struct request_finding *f, const struct json *row, const struct json *ids, struct err *err)
{
    struct request *r = &f->l->request;
    const struct json *block = json_get(row, "block_size");
    double ms = json_real(json_get(row, "timestamp"));
    int32_t tokens = tokens_of(json_get(row, "input_length"), 1);

    if (!f->l->hashes)
        return request_flawed(f, REQUEST_HASHES);
    request_begin(r);
    for (const struct json *id = json_first(ids); id; id = json_next(id)) {
        if (!json_is_number(id))
            return request_flawed(f, REQUEST_BLOCKS);
        if (ARRAY_PUSH(&r->hash, json_real(id)))
            return err_nomem(err);
    }
    r->block = block ? tokens_of(block, 1) : REQUEST_BLOCK;
    r->n_output = tokens_of(json_get(row, "output_length"), 0);
    if (r->hash.n == 0 || tokens < 0 || r->block < 0 || r->n_output < 0)
        return request_flawed(f, REQUEST_BLOCKS);
    if (tokens / r->block != r->hash.n && (tokens + r->block - 1) / r->block != r->hash.n)
        return request_flawed(f, REQUEST_BLOCKS);
    r->n_tokens = tokens;
    r->time = ms >= 0 && ms < 1e15 ? ms / 1e3 : (double)NAN;
    return request_deliver(f, err);
}

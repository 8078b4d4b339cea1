/* operation.c - the table of operation.h as a function. */
#include "formats/operation.h"

#include <string.h>

static const char *const names[N_OPERATIONS] = {
    [OP_NONE] = "none", [OP_INSERT] = "insert", [OP_KEEP] = "keep", [OP_RECOMPRESS] = "recompress",
    [OP_MOVE] = "move", [OP_EVICT] = "evict",
};

const char *operation_name(enum operation op)
{
    return names[op];
}

int operation_parse(enum operation *op, const char *name, struct err *err)
{
    for (int i = 0; i < N_OPERATIONS; i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        *op = (enum operation)i;
        return 0;
    }
    return err_set(err, ERR_FORMAT, "field 'operation' is '%.40s', not insert, keep, recompress, move, evict or none",
                   name);
}

bool cached_same(const struct cached *a, const struct cached *b)
{
    if (strcmp(a->token_digest, b->token_digest) != 0 || strcmp(a->config, b->config) != 0)
        return false;
    if (a->model_digest && b->model_digest && strcmp(a->model_digest, b->model_digest) != 0)
        return false;
    return a->bytes < 0 || b->bytes < 0 || a->bytes == b->bytes;
}

enum operation operation_between(const struct cached *before, const struct cached *after)
{
    if (!before->tier || !after->tier)
        return before->tier ? OP_EVICT : after->tier ? OP_INSERT : OP_NONE;
    if (!cached_same(before, after))
        return OP_RECOMPRESS;
    return tier_same_place(before->tier, after->tier) ? OP_KEEP : OP_MOVE;
}

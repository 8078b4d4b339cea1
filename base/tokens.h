/* tokens.h - a list of token ids, as both tokenizers (engine/tokens/tokenizer.h, embed/wordpiece.h) fill it. */
#ifndef EVP_TOKENS_H
#define EVP_TOKENS_H

#include "base/err.h"

#include <stdint.h>

struct tokens { // base/array.h; zeroed is empty
    int32_t *at;
    int n, cap;
};

int tokens_add(struct tokens *t, int32_t id, struct err *err) MUST_CHECK;
void tokens_release(struct tokens *t);

#endif

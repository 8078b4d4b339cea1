/* tokenizer_bytes.c - the tokenizer of a model that has none: every byte of a text is a token, id 0 to 255.
 *
 * Higher ids never come from a text, only from the model; id 300 reads "<300>", so different answers read differently.
 * Nothing ends an answer, and there is no chat template.
 */
#include "base/utf8.h"
#include "engine/tokens/tokenizer_internal.h"

#include <stdio.h>

enum { BYTES = 256 };

int tokenizer_of_bytes(struct tokenizer *t, int n_vocab, struct err *err)
{
    if (tokenizer_alloc(t, BPE_ALPHABET, n_vocab, err) || splitter_add(&t->splitter, SPLIT_GPT2, err))
        return err->code;
    for (int id = 0; id < n_vocab; id++) {
        char text[16];
        int n = id < BYTES ? utf8_encode(t->bpe.point[id], text) : snprintf(text, sizeof(text), "<%d>", id);
        if (bpe_set_token(&t->bpe, id, (struct text_view){ text, (size_t)n }, err))
            return err->code;
    }
    if (bpe_finish(&t->bpe, err))
        return err->code;
    return tokenizer_complete(t, (struct text_view){ 0 }, err);
}

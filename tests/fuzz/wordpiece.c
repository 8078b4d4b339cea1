/* wordpiece.c - any bytes as a vocabulary, a NUL and a text: the vocabulary is refused, or every id of the text is one
 * of its ids. A vocabulary that begins with '{' is read as tokenizer.json, any other as vocab.txt. */
#include "embed/wordpiece_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct wordpiece *w, const struct tokens *ids)
{
    for (int i = 0; i < ids->n; i++)
        if (ids->at[i] < 0 || ids->at[i] >= wordpiece_n_vocab(w))
            abort();
}

static void encode(const struct wordpiece *w, const char *text, size_t n)
{
    struct tokens ids = { 0 };
    struct err err;

    if (wordpiece_encode(w, text, n, &ids, &err))
        abort();
    check(w, &ids);
    tokens_release(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *cut = n ? memrchr(data, '\0', n) : NULL;
    size_t n_vocabulary = cut ? (size_t)(cut - data) : n;
    struct wordpiece w = { 0 };
    struct buf vocabulary = { 0 };
    struct err err;

    buf_add(&vocabulary, data, n_vocabulary);
    if (!vocabulary_parse(&w, &vocabulary, n && *data == '{' ? TOKENIZER_JSON : VOCAB_TXT, &err)) {
        if (w.cls >= w.n_vocab || w.sep >= w.n_vocab || w.unk >= w.n_vocab)
            abort();
        encode(&w, cut ? (const char *)cut + 1 : "", cut ? n - n_vocabulary - 1 : 0);
    }
    vocabulary_release(&w);
    buf_release(&vocabulary);
    return 0;
}

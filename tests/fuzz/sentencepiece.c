/* Any bytes as SentencePiece's tokenizer.model. */
#include "tests/fuzz/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tokenizer t = { 0 };
    struct err err;

    if (tokenizer_from_sentencepiece(&t, (struct text_view){ n ? (const char *)data : "", n }, 1024, &err) == 0)
        vocabulary_check(&t);
    tokenizer_release(&t);
    return 0;
}

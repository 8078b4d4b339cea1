/* Any bytes as the lines of a tiktoken file, for a vocabulary of at most 1024 tokens, and as the file of a family. */
#include "tests/fuzz/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct text_view file = { n ? (const char *)data : "", n };
    struct tokenizer t = { 0 };
    struct err err;

    if (tokenizer_alloc(&t, BPE_BYTES, 1024, &err) == 0 && tiktoken_lines(&t, file, &err) == 0 &&
        tokenizer_merged(&t, &err) == 0)
        vocabulary_check(&t);
    tokenizer_release(&t);
    if (tokenizer_from_tiktoken(&t, file, 1024, &err) == 0)
        vocabulary_check(&t);
    tokenizer_release(&t);
    return 0;
}

/* Any text as tokenizer.json. */
#include "tests/fuzz/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tokenizer t = { 0 };
    struct err err;
    struct json *root = json_parse((const char *)data, n, &err);

    if (!root)
        return 0;
    if (tokenizer_from_json(&t, root, 1024, &err) == 0)
        vocabulary_check(&t);
    tokenizer_release(&t);
    json_free(root);
    return 0;
}

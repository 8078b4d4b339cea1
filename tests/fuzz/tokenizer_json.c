/* Any text as tokenizer.json; what is accepted must encode and decode within its vocabulary. */
#include "engine/tokenizer_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "hello  world 12 <|im_end|>\ne\xcc\x81\xff";
    struct tokenizer t = { 0 };
    struct tokens ids = { 0 };
    struct buf back = { 0 };
    struct err err;
    struct json *root = json_parse((const char *)data, n, &err);

    if (!root)
        return 0;
    if (tokenizer_from_json(&t, root, 1024, &err) == 0 &&
        tokenizer_encode(&t, text_view_of(text), SPECIAL_PARSED, &ids, &err) == 0 &&
        tokenizer_decode(&t, ids.at, ids.n, &back, &err))
        abort();
    buf_release(&back);
    tokens_release(&ids);
    tokenizer_release(&t);
    json_free(root);
    return 0;
}

/* Any bytes as a GGUF file: the container, and if it holds one, the tokenizer in it. */
#include "engine/tokenizer_inside.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "hello  world 12 <|im_end|>\n\xc3\xa9";
    struct tokenizer t = { 0 };
    struct tokens ids = { 0 };
    struct gguf g;
    struct err err;

    if (gguf_parse(&g, data, n, &err))
        return 0;
    if (tokenizer_from_gguf(&t, &g, 4096, &err) == 0 &&
        tokenizer_encode(&t, text, sizeof(text) - 1, SPECIAL_PARSED, &ids, &err) == 0)
        for (int i = 0; i < ids.n; i++)
            if (ids.at[i] < 0 || ids.at[i] >= 4096)
                abort();
    tokens_release(&ids);
    tokenizer_release(&t);
    gguf_release(&g);
    return 0;
}

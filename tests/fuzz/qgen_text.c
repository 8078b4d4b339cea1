/* qgen_text - any text, as the offline generator reads it. */
#include "base/buf.h"
#include "qgen/offline.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct question_list list = { 0 };
    struct rng rng = rng_new(n);
    struct buf text = { 0 };
    struct err err;

    buf_add(&text, data, n);
    if (offline_ask(&list, buf_str(&text), 8, &rng, &err) || list.n > 8)
        abort();
    for (int i = 0; i < list.n; i++)
        if (list.at[i].position >= strlen(text.at) || strlen(list.at[i].text) > MAX_QUESTION)
            abort();
    question_list_release(&list);
    buf_release(&text);
    return 0;
}

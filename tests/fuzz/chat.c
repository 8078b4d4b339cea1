/* Any bytes as a chat template file and as a model's template: what is accepted has two halves, and those of a file are
 * the file without its mark. */
#include "engine/tokens/chat.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct text_view text = { n ? (const char *)data : "", n };
    struct chat c;
    struct err err;

    if (chat_parse(&c, text, &err) == 0) {
        size_t head = strlen(c.head), tail = strlen(c.tail);
        if (head + tail + strlen("{content}") != n || memcmp(c.head, data, head) != 0 ||
            memcmp(c.tail, data + n - tail, tail) != 0)
            abort();
        chat_release(&c);
    }
    if (chat_find(&c, text, "<s>", &err) == 0) {
        if (!c.head || !c.tail)
            abort();
        if (chat_set_date(&c, "1 Jan", &err) == 0 && !strstr(c.system.open, "1 Jan"))
            abort();
        chat_release(&c);
    }
    return 0;
}

/* Any text as tokenizer.json; what is accepted must encode and decode within its vocabulary, and give a text that is
 * cut into context and question the ids of the whole. */
#include "engine/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char text[] = "hello  world 12 <|im_end|>\ne\xcc\x81\xff's 123\r\n a=\xcc\xb8 b";

static void decode(const struct tokenizer *t)
{
    struct tokens ids = { 0 };
    struct buf back = { 0 };
    struct err err;

    if (tokenizer_encode(t, text_view_of(text), SPECIAL_PARSED, &ids, &err) == 0 &&
        tokenizer_decode(t, ids.at, ids.n, &back, &err))
        abort();
    buf_release(&back);
    tokens_release(&ids);
}

/* A pattern that runs away may do so in one way and not in the other. */
static void cut(const struct tokenizer *t, size_t at)
{
    struct tokens whole = { 0 }, ids = { 0 };
    struct prompt_ids context = { 0 }, asked = { 0 };
    struct buf before = { 0 };
    struct err err;

    buf_add(&before, text, at);
    if (tokenizer_context(t, buf_str(&before), &context, &err) == 0 &&
        tokenizer_ask(&context, "{question}", &asked, &err) == 0 &&
        tokenizer_question(&asked, text + at, &ids, &err) == 0 &&
        tokenizer_encode(t, text_view_of(text), SPECIAL_AS_TEXT, &whole, &err) == 0 &&
        (context.ids.n + ids.n != whole.n ||
         (context.ids.n > 0 && memcmp(whole.at, context.ids.at, (size_t)context.ids.n * sizeof(*ids.at)) != 0) ||
         (ids.n > 0 && memcmp(whole.at + context.ids.n, ids.at, (size_t)ids.n * sizeof(*ids.at)) != 0)))
        abort();
    buf_release(&before);
    prompt_ids_release(&context);
    prompt_ids_release(&asked);
    tokens_release(&whole);
    tokens_release(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char none[] = "";
    struct tokenizer t = { 0 };
    struct err err;
    struct json *root = json_parse((const char *)data, n, &err);

    if (!root)
        return 0;
    if (tokenizer_from_json(&t, root, 1024, &err) == 0) {
        decode(&t);
        t.chat = (struct chat){ none, none };
        for (size_t at = 0; at < sizeof(text); at++)
            if (((unsigned char)text[at] & 0xc0) != 0x80) // a character that is cut is two texts' malformed bytes
                cut(&t, at);
        t.chat = (struct chat){ NULL, NULL };
    }
    tokenizer_release(&t);
    json_free(root);
    return 0;
}

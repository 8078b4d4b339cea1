/* vocabulary.h - what a vocabulary that was accepted must do: encode and decode within its ids, and give a text that is
 * cut into context and question the ids of the whole.
 */
#ifndef EVP_FUZZ_VOCABULARY_H
#define EVP_FUZZ_VOCABULARY_H

#include "engine/tokens/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

static const char vocabulary_text[] =
    "hello  world 12 <|im_end|>\ne\xcc\x81\xff's 123\r\n a=\xcc\xb8 b\xe2\x96\x81 \xe4\xb8\xad";

static void vocabulary_decode(const struct tokenizer *t)
{
    struct tokens ids = { 0 };
    struct buf back = { 0 };
    struct err err;

    if (tokenizer_encode(t, text_view_of(vocabulary_text), SPECIAL_PARSED, &ids, &err) == 0 &&
        tokenizer_decode(t, ids.at, ids.n, &back, &err))
        abort();
    buf_release(&back);
    tokens_release(&ids);
}

/* A pattern that runs away may do so in one way and not in the other. */
static void vocabulary_cut(const struct tokenizer *t, size_t at)
{
    struct tokens whole = { 0 }, ids = { 0 };
    struct prompt_ids context = { 0 }, asked = { 0 };
    struct buf before = { 0 };
    struct err err;

    buf_add(&before, vocabulary_text, at);
    if (tokenizer_context(t, buf_str(&before), &context, &err) == 0 &&
        tokenizer_ask(&context, "{question}", &asked, &err) == 0 &&
        tokenizer_question(&asked, vocabulary_text + at, &ids, &err) == 0 &&
        tokenizer_encode(t, text_view_of(vocabulary_text), SPECIAL_AS_TEXT, &whole, &err) == 0 &&
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

/* `t` was accepted and has no chat template yet. */
static void vocabulary_check(struct tokenizer *t)
{
    static char none[] = "";

    vocabulary_decode(t);
    t->chat = (struct chat){ .head = none, .tail = none };
    for (size_t at = 0; at < sizeof(vocabulary_text); at++)
        if (((unsigned char)vocabulary_text[at] & 0xc0) !=
            0x80) // a character that is cut is two texts' malformed bytes
            vocabulary_cut(t, at);
    t->chat = (struct chat){ 0 };
}

#endif

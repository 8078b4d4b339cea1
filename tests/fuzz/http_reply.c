/* http_reply - the body of any reply, as evp-qgen reads it. */
#include "base/buf.h"
#include "qgen/reply.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct question_list list = { 0 };
    struct usage usage = { 0 };
    struct buf said = { 0 }, text = { 0 };
    struct reply_body body = { (const char *)data, n, "sk-0123456789" };
    struct err err;

    if (reply_read(&list, 0, &usage, &body, &err) == 0 && list.n == 0)
        abort();
    reply_complaint(&said, &body);
    unsigned refused = reply_refuses(&body, n % 32);
    if (refused & ~(unsigned)(n % 32) || refused & (refused - 1))
        abort(); /* one that was in use, or none */
    reply_blames_length(&body);
    buf_add(&text, data, n); /* and as what a model wrote */
    if (reply_questions(&list, 0, buf_str(&text), &err))
        abort();
    for (int i = 0; i < list.n; i++)
        if (strlen(list.at[i].text) < MIN_QUESTION || strlen(list.at[i].text) > MAX_QUESTION)
            abort();
    question_list_release(&list);
    buf_release(&said);
    buf_release(&text);
    return 0;
}

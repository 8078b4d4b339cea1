/* prompt.h - the request that asks a model for questions, and the parts of a text that is too long for its window.
 *
 * Parts are equal, cover the text without overlap, and share the questions out evenly. */
#ifndef EVP_PROMPT_H
#define EVP_PROMPT_H

#include "base/buf.h"

#include <stddef.h>

/* What a request asks of the service besides an answer; services lack one or the other. */
enum prompt_use {
    PROMPT_SCHEMA = 1, // response_format json_schema: the server holds the model to the schema
    PROMPT_JSON = 2,   // response_format json_object, where PROMPT_SCHEMA is not used
    PROMPT_SYSTEM = 4, // a system message for the instructions; without it they begin the user's message
    PROMPT_EFFORT = 8, // reasoning_effort
};

struct prompt {
    const char *model, *text; // text: n bytes
    size_t n;
    int questions;
    unsigned use; // bits of enum prompt_use
    const char *effort;
};

/* Adds the body of a chat completion request. */
void prompt_request(struct buf *out, const struct prompt *p);

struct text_part {
    size_t at, n;
};

/* How many parts a text of n bytes needs for a model that takes `window` tokens; at least 1 for a text that is not
 * empty. The instructions and the reply with its questions need some of the window. A token counts as 4 bytes. */
int prompt_parts(size_t n_text, int window, int questions);

/* Part p of `parts` equal ones, cut at white space or at least between two characters. */
struct text_part prompt_part(const char *text, size_t n, int p, int parts);

/* How many of n questions part p is asked for: they add up to n, and 0 where there are more parts than questions. */
int prompt_share(int n, int p, int parts);

#endif

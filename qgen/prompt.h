/* prompt.h - what a model is asked, and which part of a long text it is shown. */
#ifndef EVP_PROMPT_H
#define EVP_PROMPT_H

#include "base/buf.h"

#include <stddef.h>

enum prompt_form {
    PROMPT_SCHEMA, // with a response_format, so that the server holds the model to the JSON schema
    PROMPT_PLAIN,  // for servers that refuse one
};

/* Adds the body of a chat completion request for n questions about the text. */
void prompt_request(struct buf *out, const char *model, const char *text, size_t n_text, int n, enum prompt_form form);

struct text_part {
    size_t at, n;
};

/* How many parts a text of n bytes has for a model that takes `window` tokens, of which the instructions and the reply
 * with `questions` need some; at least 1. A token is taken to be 4 bytes. */
int prompt_parts(size_t n_text, int window, int questions);

/* Part p of `parts` equal ones, cut at white space or at least between two characters. */
struct text_part prompt_part(const char *text, size_t n, int p, int parts);

/* How many of n questions part p is asked for: they add up to n, and 0 where there are more parts than questions. */
int prompt_share(int n, int p, int parts);

#endif

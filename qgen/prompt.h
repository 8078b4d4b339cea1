/* prompt.h - the request that asks a model for questions, and the slices of a text that is too long for its window.
 *
 * Slices are equal, cover the text without overlap, and share the questions evenly. */
#ifndef EVP_PROMPT_H
#define EVP_PROMPT_H

#include "base/buf.h"

#include <stddef.h>

/* Features of the service that a request uses; some services lack some of them. */
enum prompt_use {
    PROMPT_SCHEMA = 1, // response_format json_schema: the server holds the model to the schema
    PROMPT_JSON = 2,   // response_format json_object, where PROMPT_SCHEMA is not used
    PROMPT_SYSTEM = 4, // a system message for the instructions; without it they begin the user's message
    PROMPT_MAX = 8,    // max_tokens; without it max_completion_tokens, the name for models that reason
};

struct prompt {
    const char *model, *text; // text: n bytes
    size_t n;
    int questions;
    unsigned use;       // bits of enum prompt_use
    const char *effort; // reasoning_effort; NULL: not sent
    int reply_tokens;   // most of the reply; 0: as many as the model likes
};

/* Adds the body of a chat completion request. */
void prompt_request(struct buf *out, const struct prompt *p);

struct text_slice {
    size_t at, n;
};

/* The number of slices of a text of n_text bytes for a model with a window of `window` tokens; at least 1 for a text
 * that is not empty. Instructions and reply take some of the window. A token counts as 4 bytes. */
int prompt_slices(size_t n_text, int window, int questions);

/* Slice i of n_slices equal ones, cut at white space or at least between two characters. */
struct text_slice prompt_slice(const char *text, size_t n, int i, int n_slices);

/* The number of questions, of n in all, to ask about slice i; 0 for some if there are more slices than questions. */
int prompt_share(int n, int i, int n_slices);

#endif

/* chat.h - the two halves of a chat template around one user message.
 *
 * Templates are Jinja programs; this is no Jinja. Of each family a template says which it is by a word in it, and the
 * two halves were rendered once with the real thing. {bos} in front stands for the model's text of its first token,
 * {system} for the template's own system turn, if it has one.
 *
 * To add a family: (1) a row in chat.c, before any row whose word its templates hold too (2) its template in
 * tests/unit/tokenizer.c
 */
#ifndef EVP_CHAT_H
#define EVP_CHAT_H

#include "base/err.h"

#include <stddef.h>

struct chat {
    char *head, *tail; // owned
};

/* `bos` is "" where the model has none. ERR_FORMAT for a template of no known family. */
int chat_find(struct chat *c, const char *jinja, size_t n, const char *bos, struct err *err) MUST_CHECK;
void chat_release(struct chat *c);

#endif

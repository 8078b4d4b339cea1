/* chat.h - the two halves of a chat template around one user message.
 *
 * Templates are Jinja programs, and this is not a Jinja interpreter. A word in a template tells its family; the two
 * halves of each family were rendered once with Jinja and are stored in a table. {bos} at the start of a half stands
 * for the text of the model's first token, {system} for the template's own system turn, if it has one.
 *
 * To add a family: (1) a row in engine/chat.c, before any row whose word its templates contain too (2) its template in
 * tests/unit/tokenizer.c
 */
#ifndef EVP_CHAT_H
#define EVP_CHAT_H

#include "base/err.h"

#include "engine/text_view.h"

struct chat {
    char *head, *tail; // owned
};

/* Finds a template's family and fills in the two halves. `bos` is "" where the model has none. ERR_FORMAT for a
 * template of an unknown family. */
int chat_find(struct chat *c, struct text_view jinja, const char *bos, struct err *err) MUST_CHECK;
void chat_release(struct chat *c);

#endif

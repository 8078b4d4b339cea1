/* gold_list.h - answers that a dataset holds to be right, as a table keeps them: a list in JSON. */
#ifndef EVP_GOLD_LIST_H
#define EVP_GOLD_LIST_H

#include "base/err.h"
#include "formats/context.h"

#include <stdbool.h>

/* *json: the right answers to a question of the context as a list in JSON, freed by the caller; NULL when the context
 * has none for it. Questions are compared word by word: evp-qgen makes every run of white space one blank. */
int gold_find(const struct context *c, const char *question, char **json, struct err *err) MUST_CHECK;

/* Is a text what gold_find() makes, or empty? */
bool gold_is_list(const char *json);

#endif

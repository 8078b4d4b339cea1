/* gold_list.h - the right answers of a dataset, as the table stores them: a list in JSON. */
#ifndef EVP_GOLD_LIST_H
#define EVP_GOLD_LIST_H

#include "base/err.h"
#include "formats/context.h"

#include <stdbool.h>

/* Sets *json to the right answers to a question of the context, a list in JSON that the caller frees; NULL when the
 * context has none. Questions are compared word by word: some streams have every run of white space as one blank. */
int gold_find(const struct context *c, const char *question, char **json, struct err *err) MUST_CHECK;

/* Is a text empty, or a list as gold_find() makes it? */
bool gold_is_list(const char *json);

#endif

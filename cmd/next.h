/* next.h - the last line of a tool: the command that comes next, with the user's own file names, ready to be pasted.
 *
 *     next_say("evp-score", cfg.output, "-o", "table.h5", NULL);
 */
#ifndef EVP_NEXT_H
#define EVP_NEXT_H

#include "base/json.h"

/* Prints the words up to NULL, quoted where a shell would split or expand them; nothing if one is "-", since that file
 * is not there to be read. Empty words are left out. */
void next_say(const char *word, ...) __attribute__((sentinel));
void next_words(const char *const *word); // the same, a list

/* What a command in a lineage (a header, or a table's lineage) was given: operand `from_end` before the last one (0),
 * or the value of an option. "": the lineage does not say. Borrowed from `made`. */
const char *next_operand(const struct json *made, const char *tool, int from_end);
const char *next_option(const struct json *made, const char *tool, const char *option, char letter);

#endif

/* near.h - the known word that a user may have meant, for messages about unknown options, commands, methods and
 * parameters. The caller refuses the word and adds "did you mean ...?".
 */
#ifndef EVP_NEAR_H
#define EVP_NEAR_H

#include <stddef.h>

/* The one of n_words `words` (entries may be NULL) nearest to the n bytes of `text`, ignoring case: a word that begins
 * with text or begins it, otherwise one within a Levenshtein distance of a third of the letters. The first of equals;
 * NULL if none is near. */
const char *near_word(const char *text, size_t n, const char *const *words, size_t n_words);

#endif

/* near.h - which known word a user may have meant: for messages about unknown options, commands, methods and
 * parameters. It never decides anything; the caller refuses the word and adds "did you mean ...?".
 */
#ifndef EVP_NEAR_H
#define EVP_NEAR_H

#include <stddef.h>

/* The word of `words` (n_words of them, entries may be NULL) that the n bytes of `text` are most like, capitals or not:
 * one that begins with text or that text begins with, else one that few insertions, removals and replacements of
 * letters make of it (a third of the letters; Levenshtein's distance). The first of equals. NULL when none is near. */
const char *near_word(const char *text, size_t n, const char *const *words, size_t n_words);

#endif

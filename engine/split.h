/* split.h - a text cut into the pieces that byte-pair merging works on, by the model's own regular expressions.
 *
 * Steps follow each other, as in Hugging Face's Sequence of pre-tokenizers: each cuts what the one before left into
 * matches and the gaps between them ("isolated"); nothing is dropped. PCRE2 runs the patterns (UTF, UCP, JIT) with one
 * change: its \s knows U+180E as white space, which Unicode took back in 6.3, so \s and \S are written out.
 */
#ifndef EVP_SPLIT_H
#define EVP_SPLIT_H

#include "base/err.h"

#include <stddef.h>

enum { SPLIT_STEPS = 8 };

struct splitter {
    struct split_step *step[SPLIT_STEPS];
    int n;
};

int splitter_add(struct splitter *s, const char *pattern, struct err *err) MUST_CHECK;
void splitter_release(struct splitter *s);

/* Calls each(arg, piece, n, err) for the pieces of n bytes of valid UTF-8, in order; stops at its first non-zero result
 * and returns that. A pattern that needs absurdly many steps fails with ERR_FORMAT. Thread-safe. */
int splitter_run(const struct splitter *s, const char *text, size_t n,
                 int (*each)(void *arg, const char *piece, size_t n, struct err *err), void *arg,
                 struct err *err) MUST_CHECK;

#endif

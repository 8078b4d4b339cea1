/* split.h - a text cut into the pieces that byte-pair merging works on, by the model's own regular expressions.
 *
 * Steps follow each other, as in Hugging Face's Sequence of pre-tokenizers: each cuts the pieces of the step before
 * into matches and the gaps between them ("isolated"); nothing is dropped. PCRE2 runs the patterns (UTF, UCP, JIT) with
 * one change: its \s still contains U+180E, which has not been white space since Unicode 6.3, so \s and \S are written
 * out.
 */
#ifndef EVP_SPLIT_H
#define EVP_SPLIT_H

#include "base/err.h"
#include "engine/text_view.h"

enum { SPLIT_STEPS = 8 };

struct splitter {
    struct split_step *step[SPLIT_STEPS];
    int n;
};

/* Adds a step. ERR_FORMAT for a pattern that does not compile, and for more than SPLIT_STEPS. */
int splitter_add(struct splitter *s, const char *pattern, struct err *err) MUST_CHECK;
void splitter_release(struct splitter *s);

/* Calls each(arg, piece, err) for the pieces of valid UTF-8, in order; stops at its first non-zero result and returns
 * that. ERR_FORMAT when a match takes more than five million steps. Thread-safe. */
int splitter_run(const struct splitter *s, struct text_view text,
                 int (*each)(void *arg, struct text_view piece, struct err *err), void *arg,
                 struct err *err) MUST_CHECK;

#endif

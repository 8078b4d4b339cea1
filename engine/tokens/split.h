/* split.h - a text cut into the pieces that byte-pair merging works on, by the model's own regular expressions.
 *
 * Steps follow each other, as in Hugging Face's Sequence of pre-tokenizers: each cuts the pieces of the step before
 * into matches and the gaps between them ("isolated"); nothing is dropped. PCRE2 runs the patterns (UTF, UCP, JIT) with
 * one change: its \s still contains U+180E, which has not been white space since Unicode 6.3, so \s and \S are written
 * out.
 *
 * The end of a text may be open: unknown text follows. Then splitter_run() gives only the pieces that are the same
 * whatever follows, and marks where each step continues once more of the text is known. PCRE2's hard partial matching
 * finds these pieces: it reports a match attempt that read up to the end of its subject, look-ahead included, and so
 * might end elsewhere. Nothing from the beginning of such an attempt on is certain. The unmatched text before it is one
 * gap that may grow, so the next step gets it with an open end.
 */
#ifndef EVP_SPLIT_H
#define EVP_SPLIT_H

#include "base/err.h"
#include "engine/model/text_view.h"

enum { SPLIT_STEPS = 8 };

struct splitter {
    struct split_step *step[SPLIT_STEPS];
    int n;
};

/* Adds a step. ERR_FORMAT for a pattern that does not compile, and for more than SPLIT_STEPS. */
int splitter_add(struct splitter *s, const char *pattern, struct err *err) MUST_CHECK;
void splitter_release(struct splitter *s);

enum text_end { END_CLOSED, END_OPEN };

/* Where each step continues, as bytes of the text. Zeroed: at its beginning. */
struct split_mark {
    size_t at[SPLIT_STEPS + 1]; // the last: within the piece that the end cuts
};

struct split_job {
    struct text_view text; // valid UTF-8, always from its beginning: patterns may look back past the mark
    enum text_end end;
    struct split_mark *mark; // where to continue; with an open end, set to where the next call continues
    int (*each)(void *arg, struct text_view piece, struct err *err);
    /* the last piece of a text with an open end, which may grow: sets *done to its bytes that are no longer needed */
    int (*open)(void *arg, struct text_view piece, size_t *done, struct err *err);
    void *arg;
};

/* Calls each(arg, piece, err) for the pieces from the mark on, in order, then open() for a last piece that more text
 * can only make longer; stops at the first non-zero result and returns it. ERR_FORMAT when a match takes more than five
 * million steps. Thread-safe. */
int splitter_run(const struct splitter *s, const struct split_job *job, struct err *err) MUST_CHECK;

#endif

/* ruler.h - makes rows of RULER's tasks, of any length ("RULER: What's the Real Context Size of Your Long-Context
 * Language Models?", Hsieh et al. 2024): all but the two with questions about Wikipedia. Templates, sizes and draws are
 * those of the scripts in https://github.com/NVIDIA/RULER (Apache-2.0), random numbers are not, and
 *
 *   - essays are the caller's text, where RULER downloads Paul Graham's; a sentence ends with . ! or ?, where RULER has
 *     nltk's rules;
 *   - words are made of syllables, where RULER has lists of English ones;
 *   - the example before a row of vt has 14 lines of noise, where RULER has as many as fit in 500 tokens.
 */
#ifndef EVP_RULER_H
#define EVP_RULER_H

#include "datasets/import.h"

enum { RULER_TOKENS_MIN = 512, RULER_TOKENS_MAX = 1 << 20, RULER_ROWS = 500 }; // ROWS: as RULER makes of a task

struct ruler {
    int tokens; // no prompt has more, with the longest answer of its task and without a chat template
    int rows;   // of each task
    uint64_t seed;
    const char *essay; // "": none; then tasks that hide needles in essays are not made
    int64_t (*count)(void *arg, const char *text, struct err *err); // tokens, or the code of an error
    void *arg;
};

/* Adds the rows of every task that im->wanted names, or of all that can be made; row i is the same whatever the number
 * of rows. ERR_USAGE: a wanted task needs an essay; ERR_FORMAT: a task does not fit in so few tokens. */
int ruler_make(struct import *im, const struct ruler *r, struct err *err) MUST_CHECK;

#endif

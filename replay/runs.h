/* runs.h - the blocks of a log's prompts as runs: blocks that every prompt has together or not at all.
 *
 * A prompt is a path in a tree of blocks, from the first block of its text to the last. A run is a longest chain of
 * blocks in which no prompt ends and none branches off. So a prompt is a few runs instead of hundreds of blocks, and
 * whatever is done to blocks can be done to runs of them (the edges of a radix tree).
 */
#ifndef EVP_RUNS_H
#define EVP_RUNS_H

#include "base/err.h"

#include <stdint.h>

struct run_of_blocks {
    int32_t parent; // the run before it in every prompt, -1: none; smaller than its own number
    int32_t n;      // blocks
};

struct runs {
    struct run_of_blocks *at;
    int n;
    int32_t *of; // (blocks): the run of a block
};

/* parent: of every block the one before it, -1: none; smaller than its own number. ends: (n_blocks), non-zero where a
 * prompt ends; overwritten. */
int runs_make(struct runs *runs, const int32_t *parent, uint8_t *ends, int n_blocks, struct err *err) MUST_CHECK;
void runs_release(struct runs *runs); // zeroed is fine

#endif

/* lru_stack.h - stack distances of runs of blocks under LRU: one replay tells the hits of caches of every size.
 *
 * All blocks in the order of their last use are a stack, and an LRU cache of C blocks holds the C topmost: a block is
 * in it exactly if fewer than C blocks were used after it (R. Mattson, J. Gecsei, D. Slutz, I. Traiger: Evaluation
 * Techniques for Storage Hierarchies, IBM Systems Journal 9(2), 1970). A cache of D blocks below it, which takes what
 * the upper one evicts, holds the next D.
 *
 * A prompt uses its last block first and its first one last. So no block lies above the one before it in a prompt: what
 * a cache holds of a prompt is always a prefix of it, and eviction takes leaves of the tree only.
 *
 * A Fenwick tree (P. Fenwick, A New Data Structure for Cumulative Frequency Tables, 1994) over the times of last uses
 * counts the blocks above in O(log runs). Memory: 36 bytes a run.
 */
#ifndef EVP_LRU_STACK_H
#define EVP_LRU_STACK_H

#include "replay/runs.h"

#include <stdint.h>

struct lru_stack {
    const struct runs *runs;
    int32_t *time;   // (runs): of the last use; -1: none
    int32_t *of;     // (n_times): the run last used at a time, or -1
    int64_t *blocks; // (n_times + 1): the Fenwick tree
    int32_t n_times, now;
    int64_t total; // blocks in the stack
};

/* Borrows the runs. */
int lru_stack_open(struct lru_stack *s, const struct runs *runs, struct err *err) MUST_CHECK;
void lru_stack_close(struct lru_stack *s); // zeroed is fine

/* Blocks above the first block of a run, which has further blocks after it in the stack; INT64_MAX: never used. */
int64_t lru_stack_above(const struct lru_stack *s, int32_t run);

/* Uses all runs of a prompt, up to its last one (-1: none). */
void lru_stack_use(struct lru_stack *s, int32_t last);

#endif

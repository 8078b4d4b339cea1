/* unvisited.h - rows of contexts that were not run, so that a plan can place them: the values known without an answer.
 *
 *     tokens                      of the context, as evp-profile would run it
 *     bytes of every variant      from the method (config_bytes_known()), exact; also for missing cells of visited
 *                                 contexts
 *     times                       from a fit over the measured ones, made only by evp-score, so that a profile holds
 *                                 nothing but measurements and sizes
 *
 * A cell is measured if it has a compress_s, a context if one of its cells is. Qualities come from score_predict().
 */
#ifndef EVP_UNVISITED_H
#define EVP_UNVISITED_H

#include "kernels/kv.h"
#include "profiler/run/grid.h"
#include "profiler/table/table.h"

/* Makes a table with a row for each work and a config for each config of the grid, without questions. Strings are
 * borrowed from the grid; table_release() frees. */
int unvisited_rows(struct table *out, const struct grid *g, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* Sets a context's values that need no run: id, tokens, digests, size. */
int unvisited_row(struct table *t, int row, const struct work *w, const struct kv_shape *shape,
                  struct err *err) MUST_CHECK;

/* Fills the sizes of cells that were not measured, except for configs that the model cannot have and configs whose
 * sizes depend on the scores. Returns the number of cells filled. */
size_t unvisited_sizes(struct table *t, const struct kv_shape *shape);

/* Fills the times that were not measured, replacing those of an earlier fit: prefill_s and prefill_flop as a n + b n^2
 * in the tokens, question_s as a + b n, decompress_s of each config as a n + b n^2, its decode_s as a + b n. b is 0
 * with one measured length; a and b are never negative. measured: the table to fit, which may be *t, or another table
 * when *t has no measurements. Does nothing when it has none. */
void unvisited_times(struct table *t, const struct table *measured);

#endif

/* unvisited.h - rows of contexts that were never run, so that a plan may place them: what is known of them without an
 * answer.
 *
 *     tokens                      of the context, as evp-profile would run it
 *     bytes of every variant      from the method (config_bytes_known()), to the byte; for cells of visited contexts,
 * too times                       from a fit over what was measured; evp-score alone does this, so that a profile holds
 *                                 nothing but measurements and sizes
 *
 * A cell was measured if it has a compress_s, a context if one of its cells was. Qualities come from score_predict().
 */
#ifndef EVP_UNVISITED_H
#define EVP_UNVISITED_H

#include "kernels/kv.h"
#include "profiler/run/grid.h"
#include "profiler/table/table.h"

/* *out: a row for each work of the grid and a config for each of the grid's, without questions. Strings are borrowed
 * from the grid; table_release() frees. */
int unvisited_rows(struct table *out, const struct grid *g, const struct kv_shape *shape, struct err *err) MUST_CHECK;

/* What unvisited_rows() and run_work() say of a context before it runs: id, tokens, digests, size. */
int unvisited_row(struct table *t, int row, const struct work *w, const struct kv_shape *shape,
                  struct err *err) MUST_CHECK;

/* Fills the sizes of cells that were not measured. Configs that the model cannot have, and those whose sizes depend on
 * the scores, stay without. Returns how many cells got one. */
size_t unvisited_sizes(struct table *t, const struct kv_shape *shape);

/* Fills the times of what was not measured, and replaces those of an earlier fit: prefill_s and prefill_flop as a n + b
 * n^2 in the tokens, question_s as a + b n, decompress_s of each config as a n + b n^2. Where two contexts of different
 * lengths were measured or fewer, b is 0. measured: the table that the fit is over, which may be *t; of other contexts
 * where *t has no measurements. Nothing is done where that has none. */
void unvisited_times(struct table *t, const struct table *measured);

#endif

/* small_table.h - a table of a few contexts in memory, for tests of tables. */
#ifndef EVP_SMALL_TABLE_H
#define EVP_SMALL_TABLE_H

#include "profiler/table/table.h"

#define SMALL_DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* n of the contexts a/1, b/2, c/3 from `first`, a question each, and the configs from `first_config` after none; cell
 * values tell where they come from. */
void small_table(struct table *t, int first, int n, int first_config, int n_configs);

/* Two points for each context, the last at all its tokens. */
void small_table_curve(struct table *t, double seconds);

#endif

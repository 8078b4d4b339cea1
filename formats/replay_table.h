/* replay_table.h - replay.tsv: what users would have seen. docs/formats/replay.md describes it. */
#ifndef EVP_REPLAY_TABLE_H
#define EVP_REPLAY_TABLE_H

#include "formats/tsv.h"

/* The names are policies. As tsv_read() and tsv_parse(); ERR_FORMAT: rate, alpha, ttft_mean_s or quality is missing. */
int replay_table_read(struct tsv *t, const char *path, struct err *err) MUST_CHECK;
int replay_table_parse(struct tsv *t, const char *text, size_t n, struct err *err) MUST_CHECK;

/* Is this the beginning of such a file? */
bool replay_table_is(const char *head);

#endif

/* frontier.h - frontier.tsv: what each alpha of a sweep gives. docs/formats/frontier.md describes it. */
#ifndef EVP_FRONTIER_H
#define EVP_FRONTIER_H

#include "formats/tsv.h"

enum {
    FRONTIER_ALPHA,
    FRONTIER_QUALITY,
    FRONTIER_TEST,
    FRONTIER_TTFT,
    FRONTIER_HITS
};                              // columns; from HITS a tier each
enum { FRONTIER_COLUMNS = 72 }; // 64 tiers have 72

/* As tsv_read() and tsv_parse(). ERR_FORMAT: other columns, too. */
int frontier_read(struct tsv *f, const char *path, struct err *err) MUST_CHECK;
int frontier_parse(struct tsv *f, const char *text, size_t n, struct err *err) MUST_CHECK;

#endif

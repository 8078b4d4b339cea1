/* access.h - how often contexts are used: an access log in JSON Lines, header optional (base/rows.h, kind "access").
 *
 *     {"context":"qasper/12"}               one access
 *     {"context":"qasper/12","count":40}    forty
 *     {"context":"qasper/12","count":2.5}   two and a half: counts may decay with age
 *     {"context":"qasper/12","at":17.25}    at that second: evp-replay looks at it
 *
 * The log may be compressed with gzip, bzip2, xz, zstd or lz4.
 */
#ifndef EVP_ACCESS_H
#define EVP_ACCESS_H

#include "base/err.h"
#include "base/map.h"
#include "base/rows.h"

#include <stdint.h>

struct access_log {
    int64_t rows;        // all rows read
    int64_t unknown;     // rows of contexts that `ids` lacks
    double unknown_uses; // their counts
};

/* Adds each row's count to frequency[map_find(ids, context)]; rows of unknown contexts are counted in log->unknown. */
int access_read(struct access_log *log, const char *path, const struct map *ids, double *frequency,
                struct err *err) MUST_CHECK;

/* Visits every row of such a file. */
int access_each(const char *path, rows_visit *each, void *arg, struct err *err) MUST_CHECK;

/* The fields of a row; *context is borrowed from it. */
int access_count(const struct json *row, const char **context, double *count, struct err *err) MUST_CHECK;

#endif

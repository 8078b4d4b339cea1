/* evp_metrics.h - records of struct evp_counters by tier and config, and their Prometheus text; docs/formats/metrics.md
 * lists the names. libevicpress counts into such records and writes them; evp-show and evp-tiers read and add them.
 *
 * A record has only what was counted for exactly its tier and config: hits belong to a config on a tier, reads to a
 * tier (config ""), finds to neither. metrics_total() adds them up.
 */
#ifndef EVP_EVP_METRICS_H
#define EVP_EVP_METRICS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "loader/libevicpress/evicpress.h"

/* Zeroed: empty. */
struct metrics {
    struct map map;          // the tier and config of each record
    struct evp_counters *at; // (n)
    int n, cap;
};

/* The record of a tier and config, made if absent; NULL without memory. Borrowed until the next call. */
struct evp_counters *metrics_row(struct metrics *m, const char *tier, const char *config);

/* The sum of all records of a tier and config; "": of every tier, of every config. */
struct evp_counters metrics_total(const struct metrics *m, const char *tier, const char *config);

/* "io" for -EVICPRESS_IO; NULL: no such code. */
const char *metrics_code(int number);

/* Adds the text of a file with this path. */
void metrics_write(const struct metrics *m, const char *path, struct buf *out);

/* Adds a text to the records, which are kept if it is refused. Counts are added; of gauges the highest counts, because
 * processes with the same tiers see the same contents. Lines of other programs are ignored. The text is changed.
 * ERR_FORMAT names the line. */
int metrics_parse(struct metrics *m, char *text, struct err *err) MUST_CHECK;

/* Adds a file, or all files *.prom of a folder. ERR_FORMAT: a line is malformed, a file is too long, or nothing in the
 * files is from libevicpress. */
int metrics_read(struct metrics *m, const char *path, struct err *err) MUST_CHECK;

void metrics_release(struct metrics *m);

#endif

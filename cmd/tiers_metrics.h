/* tiers_metrics.h - the bandwidth and latency of tiers as servers measured them: evp-tiers --from-metrics.
 *
 * A read of b bytes is taken to last latency + b / bandwidth. Over n reads of b bytes and t seconds each, the line with
 * the least sum of squared errors (ordinary least squares; Gauss, Theoria motus, 1809) has
 *
 *     1 / bandwidth = (n sum(b t) - sum(b) sum(t)) / (n sum(b^2) - sum(b)^2)
 *     latency       = (sum(t) - sum(b) / bandwidth) / n
 *
 * so the sums are enough, and those of several servers may be added. If the sizes hardly differ, or the line falls or
 * starts below 0, it says nothing about the latency: the tier keeps its latency (0, if the reads were shorter), and
 * bandwidth = sum(b) / (sum(t) - n latency). In both cases a read of the mean size lasts as long as the mean read.
 */
#ifndef EVP_TIERS_METRICS_H
#define EVP_TIERS_METRICS_H

#include "formats/tiers.h"
#include "loader/libevicpress/evicpress.h"

struct read_line {
    double bytes_per_s, latency_s;
};

/* The line through a tier's reads, which are not empty. latency_s: the tier's present latency. */
struct read_line tiers_read_line(const struct evp_counters *t, double latency_s);

/* Replaces read_bytes_per_s and latency_s of the tiers of which the metrics in a file or folder have enough reads, and
 * says which. */
int tiers_take_metrics(struct tiers *tiers, const char *path, struct err *err) MUST_CHECK;

#endif

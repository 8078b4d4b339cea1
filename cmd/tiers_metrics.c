/* tiers_metrics.c - a line through the servers' reads, and the tiers that had enough of them. */
#include "cmd/tiers_metrics.h"

#include "base/log.h"
#include "base/parse.h"
#include "loader/libevicpress/evp_metrics.h"

#include <math.h>

static const uint64_t enough_reads = 100, enough_bytes = 100000000;
static const double enough_spread = 0.1; // standard deviation of the sizes / their mean

struct read_line tiers_read_line(const struct evp_counters *t, double latency_s)
{
    double n = (double)t->reads, bytes = (double)t->read_bytes, square = t->read_square_bytes;
    double spread = n * square - bytes * bytes; // n^2 times the variance of the sizes
    double slope = (n * t->read_byte_s - bytes * t->read_s) / spread;
    double latency = (t->read_s - slope * bytes) / n;

    if (!(spread > enough_spread * enough_spread * bytes * bytes && slope > 0 && latency >= 0)) {
        latency = latency_s * n < t->read_s ? latency_s : 0;
        slope = (t->read_s - latency * n) / bytes;
    }
    return (struct read_line){ 1 / slope, latency };
}

static int take_tier(struct tier *tier, const struct evp_counters *t, struct err *err)
{
    char bytes[TEXT_SHORT], read[TEXT_SHORT], latency[TEXT_SHORT], old_read[TEXT_SHORT], old_latency[TEXT_SHORT];

    text_bytes(bytes, (double)t->read_bytes);
    if (t->reads < enough_reads || t->read_bytes < enough_bytes) {
        log_info("%-12s unchanged: %llu reads of %s; %llu reads and 100 MB are needed", tier->name,
                 (unsigned long long)t->reads, bytes, (unsigned long long)enough_reads);
        return 0;
    }
    const struct read_line line = tiers_read_line(t, tier->latency_s);
    log_info("%-12s %s/s, %s, from %llu reads of %s (before: %s/s, %s)", tier->name, text_bytes(read, line.bytes_per_s),
             text_seconds(latency, line.latency_s), (unsigned long long)t->reads, bytes,
             text_bytes(old_read, tier->read_bytes_per_s), text_seconds(old_latency, tier->latency_s));
    tier->read_bytes_per_s = round(line.bytes_per_s); // fractions mean nothing, as in loader/store/probe.c
    tier->latency_s = round(line.latency_s * 1e9) / 1e9;
    return tier_check(tier, err);
}

int tiers_take_metrics(struct tiers *tiers, const char *path, struct err *err)
{
    struct metrics m = { 0 };
    int code = metrics_read(&m, path, err);

    for (int i = 0; i < tiers->n && !code; i++) {
        const struct evp_counters t = metrics_total(&m, tiers->at[i].name, "");
        code = take_tier(&tiers->at[i], &t, err) ? err_wrap(err, "'%s'", path) : 0;
    }
    metrics_release(&m);
    return code;
}

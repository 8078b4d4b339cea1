/* The line through the reads that servers counted. */
#include "cmd/tiers_metrics.h"

#include <criterion/criterion.h>
#include <math.h>

static void add_read(struct evp_counters *t, double bytes, double seconds)
{
    t->reads++;
    t->read_bytes += (uint64_t)bytes;
    t->read_s += seconds;
    t->read_square_bytes += bytes * bytes;
    t->read_byte_s += bytes * seconds;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

Test(tiers_metrics, finds_latency_and_bandwidth_of_reads)
{
    struct evp_counters varied = { 0 }, equal = { 0 }, almost = { 0 }, falling = { 0 };

    for (int i = 0; i < 100; i++) {
        double bytes = 1e6 + 1e5 * i;
        add_read(&varied, bytes, 2e-3 + bytes / 1e9);
        add_read(&equal, 1e6, 3e-3);
        add_read(&almost, 1e6 + 1e4 * (i % 2), 3e-3 + 1e-6 * (i % 2));
        add_read(&falling, bytes, 1 / bytes);
    }
    struct read_line line = tiers_read_line(&varied, 5);
    cr_assert(near(line.bytes_per_s, 1e9) && near(line.latency_s, 2e-3), "%g %g", line.bytes_per_s, line.latency_s);
    line = tiers_read_line(&equal, 1e-3); /* 2 ms are left for 1 MB */
    cr_assert(near(line.bytes_per_s, 5e8) && line.latency_s == 1e-3, "%g %g", line.bytes_per_s, line.latency_s);
    line = tiers_read_line(&equal, 4e-3); /* the reads were shorter */
    cr_assert(near(line.bytes_per_s, 1e6 / 3e-3) && line.latency_s == 0, "%g %g", line.bytes_per_s, line.latency_s);
    line = tiers_read_line(&almost, 1e-3); /* through two points that say nothing */
    cr_assert(line.latency_s == 1e-3 &&
              near(line.bytes_per_s, (double)almost.read_bytes / (almost.read_s - 100 * 1e-3)));
    line = tiers_read_line(&falling, 0);
    cr_assert(near(line.bytes_per_s, (double)falling.read_bytes / falling.read_s) && line.latency_s == 0);
}

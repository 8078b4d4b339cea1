/* probe.h - measures how fast a folder is: writes a file into it, reads it back, and times both.
 *
 * The figures are those of a serving cache that has not used the file lately: a write counts until the device has the
 * bytes (fsync), and a read begins with the file's pages dropped from memory. Where pages cannot be dropped (some
 * network and stacked file systems), `cached` is the share of the file that stayed, so that memory is not mistaken for
 * a disk. In a file system in memory nothing is dropped. The cache of a host below a virtual machine is not seen from
 * here.
 */
#ifndef EVP_PROBE_H
#define EVP_PROBE_H

#include "base/err.h"
#include "formats/tiers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe {
    double read_bytes_per_s, write_bytes_per_s; // medians of the repetitions
    double latency_s;                           // median of small reads at random offsets
    double read_spread;                         // of the repetitions: standard deviation by mean of their times
    double cached; // share of the file that stayed in memory before it was read; 0 for a file system in memory
};

struct folder {
    bool in_memory;      // tmpfs, ramfs
    uint64_t free_bytes; // for this user
};

/* What kind of file system dir, which must exist, is on. */
int probe_look(struct folder *folder, const char *dir, struct err *err) MUST_CHECK;

/* Measures with a file of `bytes` bytes, rounded down to whole MiB, 1 MiB or more. The file has no name, so it is gone
 * after a crash too. */
int probe_run(struct probe *p, const char *dir, uint64_t bytes, struct err *err) MUST_CHECK;

/* Measures what load[i].reads reads at once reach together, and how far the time of one of them spreads, over the same
 * repetitions. Each reads a file of its own, of so many bytes, so they need that much space times the most reads. */
enum { PROBE_READS_MAX = 256 };
int probe_parallel(struct tier_load *load, int n, const char *dir, uint64_t bytes, struct err *err) MUST_CHECK;

#endif

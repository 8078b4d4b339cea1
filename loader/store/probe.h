/* probe.h - measures how fast a folder is: writes a file into it, reads it back, and times both.
 *
 * The figures are for a serving cache that has not used the file lately: a write ends when the device has the bytes
 * (fsync), and the file's pages are dropped from memory before a read. One thread reads, and computes a checksum of
 * what it has read, as in libevicpress: a file system alone is faster than an engine ever sees. Where pages cannot
 * be dropped (some network and stacked file systems), `cached` is the share of the file that stayed, so that memory
 * is not mistaken for a disk. In a file system in memory nothing is dropped. The cache of a virtual machine's host
 * cannot be seen.
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
    double read_spread;                         // standard deviation / mean of the repetitions' times
    double cached; // share of the file still in memory before reading; 0 for a file system in memory
};

struct folder {
    bool in_memory;      // tmpfs, ramfs
    uint64_t free_bytes; // for this user
};

/* Describes the file system of `dir`, which must exist. */
int probe_look(struct folder *folder, const char *dir, struct err *err) MUST_CHECK;

/* Measures with a file of `bytes` bytes, rounded down to whole MiB, 1 MiB or more. The file has no name, so it is gone
 * after a crash. */
int probe_run(struct probe *p, const char *dir, uint64_t bytes, struct err *err) MUST_CHECK;

/* Measures the total bandwidth of load[i].reads simultaneous reads, and the spread of a read's time, with the same
 * repetitions. Each read has its own file of `bytes` bytes: the space needed is that times the largest number of
 * reads. */
enum { PROBE_READS_MAX = 256 };
int probe_parallel(struct tier_load *load, int n, const char *dir, uint64_t bytes, struct err *err) MUST_CHECK;

#endif

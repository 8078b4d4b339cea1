/* probe.h - how fast a folder is: writes a file into it, reads it back, times both.
 *
 * What is measured is what a serving cache meets that has not touched the file lately: writes count until the device
 * has them (fsync), reads begin with the file's pages dropped from memory. Where they cannot be dropped (some network
 * and stacked file systems) `cached` says how much of the file stayed, so that nobody takes memory for a disk. A file
 * system in memory is what it is. What a host below a virtual machine caches cannot be seen from here.
 */
#ifndef EVP_PROBE_H
#define EVP_PROBE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe {
    double read_bytes_per_s, write_bytes_per_s; // medians of the repetitions
    double latency_s;                           // median of small reads all over the file
    double cached;                              // share of the file that stayed in memory before reading; 0 in memory
};

struct folder {
    bool in_memory;      // tmpfs, ramfs
    uint64_t free_bytes; // for this user
};

/* dir must exist. */
int probe_look(struct folder *folder, const char *dir, struct err *err) MUST_CHECK;

/* Measures with a file of `bytes` bytes (at least 1 MiB, rounded down to whole MiB). The file has no name, so nothing
 * is left behind, whatever happens. */
int probe_run(struct probe *p, const char *dir, uint64_t bytes, struct err *err) MUST_CHECK;

#endif

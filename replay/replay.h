/* replay.h - a log of prompts replayed through LRU caches of several sizes: what is found, what is computed, and when
 * the first tokens come.
 *
 * Prompts are paths in a tree of blocks of equal size; a block is found only with all blocks before it. Everything that
 * a request used is in the cache from its arrival on; DRAM holds the blocks used last, SSD the next. A compressed cache
 * has space for more blocks and reads fewer bytes.
 *
 * A request reads its blocks on SSD, one request at a time; then it waits for a GPU, which reads all found blocks from
 * DRAM and computes the rest. Its first token comes after that. Both queues serve in the order of coming. Writing,
 * decompression and decoding take no time.
 *
 *     struct replay r = { .request = requests, .n_requests = n, .parent = parents, .n_blocks = m, ... };
 *     replay_sort(&r);
 *     replay_run(&r, outcomes, &err);
 *
 * All arithmetic is deterministic. `units` are whatever the caller measures prompts in: bytes of text, or tokens.
 */
#ifndef EVP_REPLAY_H
#define EVP_REPLAY_H

#include "replay/runs.h"

#include <stdbool.h>
#include <stdint.h>

struct replay_request {
    double at;      // arrival in seconds
    int64_t units;  // its prompt
    int32_t block;  // the last block of its prompt; -1: it has none
    int32_t number; // its place in the log
};

struct replay_policy {
    int64_t dram, ssd; // capacities in blocks
    double factor;     // uncompressed bytes / bytes
};

struct replay_outcome {
    int64_t dram, ssd, computed; // units
    double prefill_s;            // of all GPUs together
    double busy_s;               // with reading from DRAM
    double ssd_s;                // reading from SSD
    double ttft_s;               // mean
};

struct replay {
    struct replay_request *request;
    int n_requests;
    const int32_t *parent; // (n_blocks): the block before it in every prompt, -1: none; smaller than its own number
    int n_blocks;
    int64_t block_units;
    bool timed; // false: requests come one after the other, and nobody waits
    /* seconds */
    double unit_s, pair_s;          // to compute a unit after n others: unit_s + n * pair_s
    double dram_unit_s, ssd_unit_s; // to read an uncompressed unit
    int n_gpus;
    const struct replay_policy *policy;
    int n_policies;
};

/* By arrival; requests of one time by their numbers. */
void replay_sort(struct replay *r);

/* The runs of the requests' blocks. */
int replay_runs(const struct replay *r, struct runs *runs, struct err *err) MUST_CHECK;

/* Seconds to compute the prompt of n units after its first `found` ones. */
double replay_prefill_s(const struct replay *r, int64_t n, int64_t found);

/* The requests must be sorted. out: (n_policies). */
int replay_run(const struct replay *r, struct replay_outcome *out, struct err *err) MUST_CHECK;

#endif

/* request_trace.h - traces: rows with an id for each block of tokens, in the dialects of TRACE_DIALECTS.
 *
 * Ids are numbers, exact to 64 bits, or texts. The last block, which may be incomplete, may have an id or not. What a
 * dialect does not say is found out from its first rows: the tokens of a block, as they fit most rows, and the unit of
 * times.
 *
 * Rows of Azure and BurstGPT, in CSV, have counts of tokens and no ids; with a model of reuse each gets a context.
 */
#ifndef EVP_REQUEST_TRACE_H
#define EVP_REQUEST_TRACE_H

#include "base/err.h"
#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>

/*    name, ids, tokens of the prompt, of the answer, time, tokens of a block, those if it does not say, seconds of the
      unit of times; 0: found out */
#define TRACE_DIALECTS(X)                                                                                              \
    X("Mooncake, Bailian", "hash_ids", "input_length", "output_length", "timestamp", "block_size", 0, 0)               \
    X("kv-cache-tester", "hash_ids", "in", "out", "t", "block_size", 64, 1)                                            \
    X("LMCache", "chunk_hashes", "seq_len", "output_length", "timestamp", "chunk_size", 256, 1)

enum { TRACE_TOKENS_MAX = 1 << 30, TRACE_BLOCK = 512, TRACE_BLOCKS = 17, TRACE_ROWS = 10000, TRACE_SEEN = 2 };

/* What rows tell of times and blocks. */
struct trace_facts {
    int64_t n, n_times;
    double first, last, tokens;
    bool fractions;             // a time is no whole number
    int64_t fits[TRACE_BLOCKS]; // rows that blocks of 2^i tokens fit
};
void trace_facts_time(struct trace_facts *f, double time, double tokens);
double trace_facts_unit(const struct trace_facts *f); // seconds
int32_t trace_facts_block(const struct trace_facts *f);

/* "zipf:S,N[,SHARE]": a request's context is that of rank r of N with a probability that is proportional to 1 / r^S,
 * drawn by the request's number; it is the first SHARE (0.5) of its prompt, the rest is its own. ERR_USAGE: not so. */
struct trace_reuse {
    double *until; // (n) sums of probabilities
    int n;
    double share;
};
int trace_reuse_parse(struct trace_reuse *r, const char *text, struct err *err) MUST_CHECK;
void trace_reuse_release(struct trace_reuse *r); // zeroed is fine

/* How rows are read, and what is known while they are. */
struct trace_reading {
    /* set by the caller */
    struct trace_facts *facts; // rows only add to these; TRACE_ROWS of them end the reading with TRACE_SEEN
    double unit;               // seconds of times; 0: as the dialect says
    double found_unit;         // if it does not; 0: milliseconds
    int32_t block;             // tokens of a block where neither row nor dialect says; 0: TRACE_BLOCK
    const struct trace_reuse *reuse;
    /* while reading */
    int64_t n_counts, n_sessions; // rows of CSV; sessions of kv-cache-tester, one of which begins every minute
    int32_t session_block;        // 0: not in a session
    uint64_t session_key;         // its ids are its own; 0: everybody's
    struct map sessions;          // of AIPerf: their turns come `delay` after each other
    struct {
        double *at; // (sessions.n)
        int n, cap;
    } turn;
};
void trace_reading_release(struct trace_reading *t); // what it holds while reading

#endif

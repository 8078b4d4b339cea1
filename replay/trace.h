/* trace.h - requests in the order of their arrivals, and which contexts they ask for.
 *
 * Recognised by content; JSON Lines may be compressed, as access logs (logs/access.h):
 *
 *     access rows     {"context":"qasper/12","at":17.25}    seconds; "count" counts as so many requests at that time
 *     Mooncake        {"timestamp":17250,...}               or seconds; no contexts of a table; "output_length"
 *     Azure           TIMESTAMP,ContextTokens,...           2023-11-16 18:15:46.6805900; GeneratedTokens
 *     BurstGPT        Timestamp,Model,...                   seconds; Response tokens
 *     oracleGeneral   libCacheSim's records of 24 bytes, in a file whose name ends like this or .bin: seconds (u32), an
 *                     object (u64), which is a context; its size (u32) and next use (i64) are not looked at
 *     poisson:QPS,N   no file: N requests, exponential gaps
 *
 * Where a trace names no contexts, they are drawn (trace_draw).
 */
#ifndef EVP_TRACE_H
#define EVP_TRACE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>

struct trace {
    struct trace_request {
        int64_t at;      // ns after the first
        int32_t context; // of `contexts`, or drawn; -1: the trace does not say
        int32_t number;  // its place in the trace
        int32_t output;  // tokens of its answer; 0: the trace does not say
    } * request;
    int n;
    struct map contexts; // the names in the trace
    bool timed;          // false: the rows have no times; they follow each other
    int n_spread;        // requests that shared their times (trace_spread)
    int64_t interval;    // ns: over which they are spread
    double unit;         // seconds of Mooncake's times, found out from the rows; 0: there are none
};

/* Several traces become one, by arrival, ties in the order of the traces. ERR_FORMAT names line and field; ERR_USAGE:
 * not poisson:QPS,N. */
int trace_read(struct trace *t, char *const *path, int n, uint64_t seed, struct err *err) MUST_CHECK;
void trace_release(struct trace *t); // zeroed is fine

/* Names the contexts 0 to n_contexts - 1 by `map`: those of the trace, in the order of their first requests, take them
 * in turn. Or draws them by zipf:S[,drift:D][,churn:C]. Request i asks for the context of rank r with a probability
 * that is proportional to 1 / r^S. drift: the ranks move on, by D of all contexts over the whole trace, so with 1 every
 * context has had every rank. churn: C times over the whole trace a context that is drawn at random and the context of
 * rank 1 change places. ERR_USAGE: not such a text. */
int trace_draw(struct trace *t, const char *spec, int n_contexts, uint64_t seed, struct err *err) MUST_CHECK;

void trace_scale(struct trace *t, double factor); // of its times

/* Stretches the times so that `rate` requests come per second on average. */
void trace_stretch(struct trace *t, double rate);

/* Requests that share their time with others came during the time between two times, not at once: spreads them over it.
 * That is as many seconds as all times are multiples of, or else the median. Nothing changes where at most a tenth of
 * the requests share theirs, or a half if times are not whole seconds. trace_read() has done it. */
int trace_spread(struct trace *t, struct err *err) MUST_CHECK;
bool trace_was_spread(const struct trace *t, struct buf *out); // adds a sentence; false: nothing changed

#endif

/* requests.h - from request logs to contexts: which beginnings of prompts are used again, what is asked about them, and
 * how often.
 *
 *     struct requests rq = { .choice = { .min_uses = 2, .min_bytes = 1024 }, .per_context = 8, ... };
 *     requests_open(&rq, "proxy.log.zst", &err);        // any number of logs
 *     requests_find(&rq, &err);
 *     requests_write(&rq, &sink, &err);
 *     requests_close(&rq);
 *
 * The logs are read three times, piece by piece; their texts are never held in memory. The first reading counts
 * beginnings (prefix_tree.h), and the best are chosen; requests_find() ends with the second, which sees where
 * exactly the requests that belong to a context differ: a context ends there, at the white space before. The third
 * reading gives out contexts and questions. A request belongs to the longest context that it begins with and goes on
 * after. What cannot be read twice (standard input, a pipe) is copied to a file in $TMPDIR that has no name.
 */
#ifndef EVP_REQUESTS_H
#define EVP_REQUESTS_H

#include "base/map.h"
#include "datasets/prefix_tree.h"
#include "datasets/request.h"
#include "formats/context.h"

/* A longer rest of a prompt is no question. */
enum { REQUESTS_MAX_QUESTION = 8192 };

enum requests_ids { REQUESTS_IDS_READABLE, REQUESTS_IDS_HASHED }; // first words and a digest; the digest alone

struct requests {
    /* set by the caller */
    struct prefix_choice choice;
    int per_context;  // questions kept of each context, drawn by the digest of their text
    double half_life; // seconds after which a use counts half; 0: every use counts 1
    enum requests_ids ids;
    const struct map *wanted;                         // models; NULL or empty: all
    void (*damaged)(void *arg, const char *sentence); // a line that is not JSON; it is left out
    void (*reading)(void *arg, int64_t bytes);        // so many more were read
    void *arg;

    /* results */
    struct map models;        // every model in the logs, wanted or not
    struct request_line line; // its counts are those of the first reading
    int64_t n_lines, n_damaged;
    int64_t n_used;     // requests to wanted models
    int64_t n_timeless; // of these, without a time
    double first, last; // moments of the first and last of them; NaN: no request has one
    int n_chosen;       // contexts
    int64_t n_covered;  // requests that belong to contexts that were written
    int n_few;          // of those that were written, with fewer than two questions

    /* for datasets/requests.c */
    struct {
        struct requests_log *at;
        int n, cap;
    } logs;
    struct prefix_tree tree;
    struct map written;         // ids of contexts
    int32_t *mark;              // (tree.n)
    struct requests_slot *slot; // (n_chosen)
};

/* What comes out, in the order of the first request of each context; the question of a context after the context. */
struct requests_sink {
    /* 1: the context is not wanted after all. uses: requests that belong to it, each weighed by its age. */
    int (*context)(void *arg, struct context *c, double uses, struct err *err);
    int (*question)(void *arg, const struct question *q, struct err *err);
    void *arg;
};

int requests_open(struct requests *rq, const char *path, struct err *err) MUST_CHECK; // "-": standard input

/* ERR_FORMAT: the logs hold no request; or half_life is set and a request has no time. */
int requests_find(struct requests *rq, struct err *err) MUST_CHECK;
int requests_write(struct requests *rq, const struct requests_sink *sink, struct err *err) MUST_CHECK;
void requests_close(struct requests *rq); // frees all but what the caller set

#endif

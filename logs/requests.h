/* requests.h - from request logs to contexts: which prefixes of prompts are reused, with which questions, and how
 * often.
 *
 *     struct requests rq = { .choice = { .min_uses = 2, .min_bytes = 1024 }, .per_context = 8, ... };
 *     requests_open(&rq, "proxy.log.zst", &err);        // any number of logs
 *     requests_find(&rq, &err);
 *     requests_write(&rq, &sink, &err);
 *     requests_close(&rq);
 *
 * Three passes over the logs, block by block; their texts are never all in memory. requests_find() makes two: the first
 * counts prefixes (prefix_tree.h) and chooses the best, the second finds where exactly the requests of a context
 * differ; the context ends there, at the white space before. The third, requests_write(), gives out contexts and
 * questions. A request belongs to the longest context that it begins with and continues after. Logs that cannot be
 * read twice (standard input, a pipe) are copied to an unnamed file in $TMPDIR.
 */
#ifndef EVP_REQUESTS_H
#define EVP_REQUESTS_H

#include "base/map.h"
#include "logs/prefix_tree.h"
#include "logs/request.h"
#include "formats/context.h"

/* A longer rest of a prompt is not a question. */
enum { REQUESTS_MAX_QUESTION = 8192 };

/* Classes of seconds, each 2^(1/64) times the one before. */
enum { REQUESTS_GAPS = 64 * 40 };

enum requests_ids { REQUESTS_IDS_READABLE, REQUESTS_IDS_HASHED }; // first words and a digest; the digest alone

struct requests {
    /* set by the caller */
    struct prefix_choice choice;
    int per_context;  // questions kept per context: those asked last, in whole days; within a day drawn by digest
    uint64_t seed;    // of the draw
    double forget;    // seconds: contexts whose last request is this long before the last of all are left out; 0: none
    double half_life; // seconds after which a use counts half; 0: every use counts 1
    bool halves;      // uses in the first half of the logs' time are counted apart
    enum requests_ids ids;
    const struct map *wanted;                         // models; NULL or empty: all
    bool lenient;                                     // one of several logs may be unreadable, wholly or at its end
    bool partial;                                     // go on when more than a tenth of the requests is left out
    void (*damaged)(void *arg, const char *sentence); // a line that is not JSON; it is left out
    void (*unread)(void *arg, const char *sentence);  // a log that is unreadable; NULL unless lenient
    void (*reading)(void *arg, int64_t bytes);        // bytes read since the last call
    /* after the first pass of each log; label is its name in quotes */
    void (*read)(void *arg, const char *label, const struct request_log *log);
    void *arg;

    /* results */
    struct map models;        // every model in the logs, wanted or not
    struct request_line line; // with the counts of the first pass
    int64_t n_lines, n_damaged;
    int64_t n_used;               // requests to wanted models
    int64_t n_unknown;            // what may have been one, and was not recognised: flawed so, or damaged
    int64_t n_left_out;           // all flawed, and damaged
    int n_unread;                 // logs that could not be read, wholly or at their end
    double first, last;           // their earliest and latest time; NaN: no request has a time
    int n_chosen;                 // contexts
    int n_forgotten;              // of these, left out by `forget`
    int64_t n_covered;            // requests that belong to written contexts
    int n_alone;                  // long beginnings that one conversation alone uses again
    int64_t again[REQUESTS_GAPS]; // uses of contexts by the time since the use before, for requests_again()
    int n_lacking[2];             // written contexts without questions of a split (enum split)

    /* for logs/requests*.c */
    double now;                      // when the last log was opened
    int64_t n_bytes, n_bytes_unread; // of all logs
    struct err why;                  // of the first unreadable log
    struct {
        struct requests_log *at;
        int n, cap;
    } logs;
    struct prefix_tree tree, talks;
    struct map written;           // ids of contexts
    struct requests_slot **order; // (written.n): their slots
    int32_t *mark;                // (tree.n)
    struct requests_slot *slot;   // (n_chosen)
};

/* Takes the output: contexts in the order of their first requests, questions after their context; at the end, in the
 * same order, how often each context was used. */
struct requests_sink {
    int (*context)(void *arg, struct context *c, struct err *err); // returns 1 to drop the context
    int (*question)(void *arg, const struct question *q, struct err *err);
    /* requests, each weighed by its age; in the first half of the logs' time if `halves`, else 0 */
    int (*access)(void *arg, const char *context, double uses, double uses_before, struct err *err);
    void *arg;
};

/* "-": standard input. A log is a regular file; standard input and what the shell opens (/dev/fd/63) may be pipes. */
int requests_open(struct requests *rq, const char *path, struct err *err) MUST_CHECK;

/* ERR_FORMAT: the logs hold no request, too many are left out, or less than half of their bytes can be read. A request
 * without a time counts as the newest does. */
int requests_find(struct requests *rq, struct err *err) MUST_CHECK;
int requests_write(struct requests *rq, const struct requests_sink *sink, struct err *err) MUST_CHECK;

/* The median of the seconds between two uses of a context; NaN: there are none. */
double requests_again(const struct requests *rq);

/* Without contexts: reads the logs once, calls each(arg, request) for every request to a wanted model, in the order of
 * the lines, and sets the results up to n_left_out. ERR_FORMAT: the logs hold no request, or too many are left out. */
int requests_visit(struct requests *rq, request_visit *each, void *arg, struct err *err) MUST_CHECK;

/* Reads the logs without counting anything, until each() returns other than 0; returns that. */
int requests_look(struct requests *rq, request_visit *each, void *arg, struct err *err) MUST_CHECK;
void requests_close(struct requests *rq); // frees everything but the members set by the caller

#endif

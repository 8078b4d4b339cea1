/* requests_internal.h - between the files of an import of request logs: requests_read.c reads lines, requests.c counts
 * and chooses, requests_write.c makes contexts and questions,
 * requests_slug.c names them, requests_talks.c and requests_marker.c know conversations and special tokens.
 */
#ifndef EVP_REQUESTS_INTERNAL_H
#define EVP_REQUESTS_INTERNAL_H

#include "logs/requests.h"

#include <stdbool.h>

/* ---- requests_read.c ---- */

struct requests_log {
    char *label; // for messages
    int fd;
    bool cut;      // a part of it cannot be read
    double newest; // a day after it was last changed, in seconds since 1970: none of its lines is newer
};

/* Calls each(arg, request) for every request to a wanted model. Only the first pass keeps counts. */
enum requests_reading { REQUESTS_FIRST, REQUESTS_AGAIN };
int requests_each(struct requests *rq, enum requests_reading reading, request_visit *each, void *arg,
                  struct err *err) MUST_CHECK;

/* ---- requests.c ---- */

enum {
    DAY = 86400,       // seconds
    SLOT_AHEAD = 1024, // bytes compared after a node: more than a chunk, less than a question
    SLOT_TAIL = 512,   // bytes compared at the end of prompts
};

/* A rest that becomes a question. */
struct requests_asked {
    uint64_t rest; // its digest; 0: written
    double at;     // time of the last request with it; INFINITY: unknown
};

/* A chosen prefix, and its requests so far. */
struct requests_slot {
    size_t at; // bytes up to the end of its node
    double uses, uses_before;
    size_t common; // bytes after `at` that all have in common, at most SLOT_AHEAD
    size_t tail;   // bytes at their end that all have in common, at most SLOT_TAIL
    size_t min_n;  // bytes of the shortest
    char *ahead;   // of the first one: up to SLOT_AHEAD bytes after `at`, then up to SLOT_TAIL at the end
    size_t n_ahead, n_tail;
    struct requests_asked *asked; // the best first
    int n_asked;
    double last;   // time of the request before; NaN: unknown
    double newest; // time of the last request; INFINITY: one has no time
    /* for the third pass */
    enum { SLOT_NEW, SLOT_WRITTEN, SLOT_DROPPED, SLOT_MERGED } state;
    struct requests_slot *into; // SLOT_MERGED: the slot that was cut back to the same context, written or dropped
    size_t cut, n_ask;          // where the context ends; bytes at the end of a prompt that are in its ask
    char *id;
    int n_split[2]; // questions, by their split
};

/* The slot of the context that a request belongs to, or NULL. */
struct requests_slot *requests_slot_of(const struct requests *rq, const struct request *r);

/* The rest of a request after the node of its context, and whether it may be a question: it is in the last message. */
uint64_t requests_rest(const struct requests *rq, const struct requests_slot *s, const struct request *r, bool *asks);

/* ---- requests_talks.c ---- */

/* *from: the bytes of a prompt that are a whole prompt of its conversation seen before; SIZE_MAX: all of them, for a
 * later one was; 0: none. Notes the prompt. */
int requests_continued(struct requests *rq, const struct request *r, size_t *from, struct err *err) MUST_CHECK;

/* ---- requests_marker.c ---- */

/* The length of a special token of a chat template at s, with the role after it; 0: there is none. */
size_t requests_marker(const char *s, const char *end);

/* Does a message of a user begin after a place: the rest is more than one question? */
bool requests_continues(const struct request *r, size_t from);

/* ---- requests_slug.c ---- */

/* Adds a few words that tell what a context is about, "pump-valve-kaze-"; nothing for a text without words. */
int requests_add_slug(struct buf *id, const struct context *c, struct err *err) MUST_CHECK;

#endif

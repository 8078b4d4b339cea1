/* asked.h - the contexts that a model is asked about, slice by slice: which requests remain, and what their replies
 * bring, however they travel.
 *
 * A context longer than the model's window is asked about slice by slice. Once all of its slices have their questions,
 * they become one list in the order of the text; it does not depend on the order of the replies.
 */
#ifndef EVP_ASKED_H
#define EVP_ASKED_H

#include "base/err.h"
#include "formats/context.h"
#include "qgen/question_list.h"
#include "qgen/reply.h"

#include <stdbool.h>

/* A request: slice number `slice`, from 0, of `n_slices` of a context. */
struct asked_slice {
    int context, slice, n_slices;
};

/* A failure of one of the first two ends the run. */
struct asked_events {
    void *arg;
    /* A model has replied; the list is empty if it gave no questions. Comes before answered(). */
    int (*replied)(void *arg, struct asked_slice s, const struct question_list *list, const struct usage *usage,
                   struct err *err);
    /* All slices of a context have their questions. The list may be taken (and zeroed). */
    int (*answered)(void *arg, int context, struct question_list *list, struct err *err);
    void (*failed)(void *arg, int context, const struct err *why); // at most once for a context
};

struct asked {
    const struct contexts *contexts;
    const char *model;
    const char *effort; // reasoning_effort, for reasoning models; NULL: not sent
    int per_context;    // questions
    int window;         // the model's context length in tokens
    int reply_tokens;   // most of a reply; 0: as many as the model likes
    int64_t max_tokens; // prompts and replies together; 0: no cap
    int64_t taken;      // tokens of all replies and their prompts, those of earlier runs included
    struct asked_events events;

    int64_t pending;              // the most that requests without a reply may take
    struct asked_context *at;     // (contexts->n)
    int next_context, next_slice; // of asked_next()
};

/* Starts with every context i with wanted[i]; the fields above `pending` are set. */
int asked_open(struct asked *a, const bool *wanted, struct err *err) MUST_CHECK;
void asked_close(struct asked *a); // zeroed is fine

/* The slices of a context, also of one that is not wanted. */
int asked_slices(const struct asked *a, int context);

/* The next slice, in the order of contexts and text, that has no questions; not of a context that has failed. Each
 * comes once. */
bool asked_next(struct asked *a, struct asked_slice *s);

/* Adds the body of the request. use: bits of enum prompt_use. */
void asked_body(const struct asked *a, struct asked_slice s, unsigned use, struct buf *out);

/* May a request of n bytes be made under the cap? No token is shorter than a byte, so it takes at most n tokens, and
 * reply_tokens more. */
bool asked_affords(const struct asked *a, size_t n);
void asked_sent(struct asked *a, size_t n); // the request is pending,
void asked_done(struct asked *a, size_t n); // and no longer

/* Is the slice without questions, and may still get some? */
bool asked_is_open(const struct asked *a, struct asked_slice s);

/* The questions of a slice, unless it has some already; the list is taken. */
int asked_give(struct asked *a, struct asked_slice s, struct question_list *list, struct err *err) MUST_CHECK;

/* Reads a reply and adds its tokens to a->taken and *usage. ERR_FORMAT: it is of no use, and the slice is as open as
 * before; any other failure ends the run. */
int asked_read(struct asked *a, struct asked_slice s, const struct reply_body *body, struct usage *usage,
               struct err *err) MUST_CHECK;

/* Gives the context up. */
void asked_fail(struct asked *a, int context, const struct err *why);

#endif

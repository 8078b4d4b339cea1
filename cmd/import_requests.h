/* import_requests.h - evp-import --requests: three streams from request logs. Prints messages. */
#ifndef EVP_IMPORT_REQUESTS_H
#define EVP_IMPORT_REQUESTS_H

#include "base/rows.h"
#include "logs/requests.h"

struct import_requests {
    struct requests rq; // the caller sets its options
    const char *folder; // for contexts.jsonl, questions.jsonl, access.jsonl, access-before.jsonl
    const char *model;  // for the next command; NULL: the default one
    struct rows_made made;
    int64_t min_tokens, max_tokens; // contexts of other lengths are left out
    /* sets c->n_tokens; NULL: tokens are not counted */
    int (*count)(void *arg, struct context *c, struct err *err);
    void *arg;
};

/* Reads the logs and writes the files. Returns 0, 1 (a line was left out), or an error, without any file. */
int import_requests(struct import_requests *im, char **path, int n, struct err *err) MUST_CHECK;

#endif

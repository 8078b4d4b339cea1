/* load_work.h - pieces of work that several threads share, `--jobs` of them: payloads to check, to copy, to read back.
 */
#ifndef EVP_LOAD_WORK_H
#define EVP_LOAD_WORK_H

#include "base/err.h"

/* piece(arg, i) for each i below n, in any order; the first failure ends it. */
struct load_work {
    int (*piece)(void *arg, int i, struct err *err);
    void *arg;
    int n, jobs;
};

int load_share(const struct load_work *work, struct err *err) MUST_CHECK;

#endif

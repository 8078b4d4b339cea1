/* load_work.h - work shared by `--jobs` threads: payloads to check, to copy, to read back. */
#ifndef EVP_LOAD_WORK_H
#define EVP_LOAD_WORK_H

#include "base/err.h"

/* Calls each(arg, i) for each i below n, in any order; the first failure ends the work. */
struct load_work {
    int (*each)(void *arg, int i, struct err *err);
    void *arg;
    int n, jobs;
};

int load_share(const struct load_work *work, struct err *err) MUST_CHECK;

#endif

/* drift_ask.h - evp-drift's answers: computed with evp-profile and evp-score, or served and embedded here. Runs tools
 * and prints messages. */
#ifndef EVP_DRIFT_ASK_H
#define EVP_DRIFT_ASK_H

#include "drift/drift.h"
#include "base/opt.h"

struct drift_asking {
    const char *contexts, *questions, *model, *chat, *embedder, *backend, *profile_options;
    const char *dir; // for lists, answers and scores
    struct opt_list served;
    bool truncate, quiet;
    int threads;
    double budget;     // seconds of prefill; 0: no limit
    int64_t n_answers; // computed, or served
    int64_t n_all;     // that all configs would give to the same questions
    bool partial;      // some contexts could not be profiled
};

/* The first few new questions of each context, then the others of contexts that are undecided. The same again computes
 * no answer twice, as long as `dir` is there. */
int drift_ask(struct drift *d, struct drift_asking *a, struct err *err) MUST_CHECK;

/* Removes all files in `dir`: what drift_ask() left, and what interrupted tools wrote. */
int drift_ask_clean(const struct drift_asking *a, struct err *err) MUST_CHECK;

/* The answers of a->served. */
int drift_served(struct drift *d, struct drift_asking *a, struct err *err) MUST_CHECK;

#endif

/* bench.h - a whole profile as evp-profile runs it, for programs that time it: inputs, engine, session, grid. */
#ifndef EVP_BENCH_H
#define EVP_BENCH_H

#include "profiler/run/groups.h"
#include "profiler/run/run.h"

struct bench_options {
    const char *contexts, *questions, *configs; // files; a list of configs
    int max_new_tokens;
    double temperature; // of the reference's second answers; 0: none
    struct engine_options engine;
};

struct bench {
    struct contexts contexts;
    struct questions questions;
    struct config *config;
    const struct config **list;
    int n_configs;
    struct engine *engine;
    struct session *session;
    struct shards shards; // none
    struct grid grid;
    struct table_made made;
};

/* Reads the inputs and opens the engine, without weights. */
int bench_open(struct bench *b, const struct bench_options *options, struct err *err) MUST_CHECK;

/* Plans memory for all contexts and reads the weights. */
int bench_start(struct bench *b, struct err *err) MUST_CHECK;

/* For run_work(). */
struct run bench_run(const struct bench *b);

void bench_close(struct bench *b); // after bench_open(), also where that failed

#endif

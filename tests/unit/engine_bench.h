/* engine_bench.h - an engine on a tiny random model, on any backend, with texts and questions for it: what the tests of
 * the engine share. */
#ifndef EVP_ENGINE_BENCH_H
#define EVP_ENGINE_BENCH_H

#include "engine/transformer/engine.h"

enum { CONTEXT = 1100, LONG = 600, QUESTIONS = 4, NEW = 12, VARIANTS = 4 };

struct engine_bench {
    char path[64];
    struct engine *engine;
    struct session *session;
    struct config *config;
    const struct config *list[VARIANTS]; // none first
    int n_configs;
    int32_t ids[CONTEXT + QUESTIONS * LONG];
    struct question_ids question[QUESTIONS];
};

/* "cpu", "cuda", "reference" or "fenced", and " bf16" where that is meant. NULL: not on this machine. */
struct engine_bench *bench_open(const char *backend);

/* "cpu"; where that is left out the test is skipped. */
struct engine_bench *bench_on_cpu(void);
void bench_close(struct engine_bench *b);

/* How some variants answer some questions; the last n_sampled of them by tokens that are drawn. */
struct how {
    int n_variants, n_questions, batch, n_shared, n_sampled;
    const struct answer *given; // (n_questions) answers to be judged; NULL: none
};
extern const uint64_t bench_seeds[QUESTIONS];
extern const double bench_temperature;

struct bench_answers {
    int n_variants, n_questions;
    struct variant variant[VARIANTS];
    struct answer answer[VARIANTS * QUESTIONS];
    int progress;
};

/* Prefills, derives the first variants and answers the first questions, so many sequences at once. Heads of keydiff's
 * variant get fewer rows one by one, and the last none, as a method that is uneven over heads would leave them. */
struct bench_answers *bench_run(struct engine_bench *b, struct how how);
struct bench_answers *bench_run_all(struct engine_bench *b, int batch); // all greedily
void bench_run_free(struct bench_answers *r);

/* Fails the test unless both have the same tokens. */
void bench_same_answers(const struct bench_answers *a, const struct bench_answers *b, const char *what);

/* Backends on which a sequence's bits must not depend on its batch. */
enum { ALONE_AND_TOGETHER = 4 };
extern const char *const alone_and_together[ALONE_AND_TOGETHER];

#endif

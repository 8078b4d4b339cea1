/* score.h - from answers to quality, and from quality to utility: the work of evp-score on a table. The embedder is the
 * caller's (struct score_embedder).
 *
 * The quality of an answer under a config is its similarity to the reference's answer (config 0, the uncompressed
 * cache) to the same question: 0 for nothing in common, 1 for the same. Values in between mean nothing by themselves,
 * because any two answers in one language about one text are somewhat similar. So two points of the scale are measured
 * too: `unrelated`, the similarity of the reference's answers to different questions of a context (quality near it:
 * nothing of the answers is left), and `same_meaning`, the similarity of two answers of the reference to one question,
 * the second sampled (as near as the model is to itself, and no nearer to the facts).
 *
 *     bool *lost = calloc(t.n_contexts, sizeof(*lost));
 *     int n_lost = score_lost(&t, lost);                  // contexts that can get no quality
 *     table_alloc_scores(&t, n_tiers + 1, &err);
 *     score_answers(&t, &embedder, weight, &err);         // similarity, quality
 *     score_predict(&t, &err);                            // predictions, for evp-plan
 *     score_tiers(&t, &tiers, alpha, &err);               // TTFT and utility
 */
#ifndef EVP_SCORE_H
#define EVP_SCORE_H

#include "formats/context.h"
#include "formats/tiers.h"
#include "profiler/table/table.h"

#include <math.h>
#include <stdbool.h>

/* Sets lost (C): does a context have answers, but none of the reference? Returns the number of lost contexts; -1: the
 * reference answered no question of any context. */
int score_lost(const struct table *t, bool *lost);

/* The sums behind a weighted mean, sum(w s) / sum(w). It is as sure as one of (sum w)^2 / sum(w^2) numbers (Kish 1965),
 * and its variance is sum(w (s - mean)^2) / (sum(w) - sum(w^2) / sum(w)). With weights of 1: n, and n - 1. */
struct weight_sums {
    double sum, squares; // of the weights
};

static inline void weight_sums_add(struct weight_sums *w, double weight)
{
    w->sum += weight;
    w->squares += weight * weight;
}

static inline int32_t weight_sums_n(const struct weight_sums *w)
{
    return w->sum > 0 ? (int32_t)lround(w->sum * w->sum / w->squares) : 0;
}

static inline double weight_sums_std(const struct weight_sums *w, double squares)
{
    return weight_sums_n(w) > 1 ? sqrt(fmax(squares, 0) / (w->sum - w->squares / w->sum)) : (double)NAN;
}

/* Functions that embed n texts as vector (n, width), and take the cosine of two vectors. */
struct score_embedder {
    int width;
    int (*embed)(void *arg, const char *const *text, int n, float *vector, struct err *err);
    float (*cosine)(const float *a, const float *b, int width);
    void *arg;
};

/* Fills the arrays of table_alloc_scores():
 *
 * similarity: cosine with the reference's answer. Exactly 1 for equal texts, also two empty ones; NAN where either
 * answer was not run. quality: mean similarity over the questions of each context and split, each clamped to [0, 1];
 * NAN where none was run. With it the number of these similarities and their standard deviation (n - 1; NAN for n < 2),
 * each weighed (struct weight_sums). weight (Q): of each question; NULL: all 1. The other means are not weighed.
 * Questions of other splits do not count. unrelated: per context the mean similarity, clamped too, between the
 * reference's answers to two of its questions, of any split; each question is compared with at most UNRELATED_BEFORE
 * earlier ones. NAN with fewer than two. sampled_similarity: like similarity, between the reference's answer and its
 * sampled one. same_meaning: per context its mean over the questions of all splits, each clamped; NAN without. */
enum { UNRELATED_BEFORE = 64 }; // more would take longer than embedding, and tell nothing new
int score_answers(struct table *t, const struct score_embedder *e, const double *weight, struct err *err) MUST_CHECK;

/* Did the reference answer any question a second time? */
bool score_has_sampled(const struct table *t);

/* The means of `unrelated` and `same_meaning` over contexts; NAN: not in the table. */
double score_unrelated(const struct table *t);
double score_same_meaning(const struct table *t);

/* (quality - unrelated) / (top - unrelated); top is 1 or same_meaning. Below 0: worse than unrelated. NAN unless
 * top > unrelated. */
static inline double score_kept(double quality, double unrelated, double top)
{
    return top > unrelated ? (quality - unrelated) / (top - unrelated) : (double)NAN;
}

/* Tokens per second of decoding over a variant, relative to the reference: the mean over the contexts where both were
 * timed at table_batch[batch]; NAN without any. score_has_speed: is there any? */
double score_speed(const struct table *t, int config, int batch);
bool score_has_speed(const struct table *t);

/* The standard error of table_mean() of a config's quality, with the contexts as a sample; for a single context, with
 * its questions as a sample. NAN with fewer than two. */
double score_error(const struct table *t, enum split split, int config);

/* The same of another mean (C, V) of answers (Q, V). */
double score_mean_error(const struct table *t, const double *mean, const float *answers, enum split split, int config);

/* Are there enough questions to tell the configs of a table apart? Every two configs, except `none`, are compared
 * question by question in a split. They differ when the mean difference of their similarities is at least two of its
 * standard errors. Two configs with equal answers to everything do not count as a pair. There are too few questions
 * when fewer than half of the pairs differ. Of very many questions only the first are compared. */
struct score_resolution {
    int pairs, told; // told: pairs that differ
};

struct score_resolution score_resolve(const struct table *t, enum split split);

/* Adds predictions (planner/belief.h) of the train qualities, for every cell with a size; a cell without answers gets
 * its config's mean. */
int score_predict(struct table *t, struct err *err) MUST_CHECK;

/* Fills tier_name, ttft_s and utility, allocated by table_alloc_scores() for the tiers and "recompute", at frequency 1.
 * Variants that were not run have no values on the tiers; on "recompute" only config 0 has. */
int score_tiers(struct table *t, const struct tiers *tiers, double alpha, struct err *err) MUST_CHECK;

#endif

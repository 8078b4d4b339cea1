/* score.h - from answers to quality, and from quality to utility: the work of evp-score on a table. The embedder is the
 * caller's (struct score_embedder).
 *
 * An answer under a config is as good as it is like the reference's (config 0, the uncompressed cache) to the same
 * question: from 0, nothing in common, to 1, the same. What lies between has no meaning by itself: two answers in one
 * language about one text are alike to some degree, whatever was asked. So the scale is measured beside: how alike the
 * reference's answers to different questions of a context are, `unrelated`. A quality near it says that nothing of the
 * answers is left. And how alike two answers of the reference to one question are, the second of them sampled,
 * `same_meaning`: both are as good, so a quality near it says that nothing is lost.
 *
 *     bool *lost = calloc(t.n_contexts, sizeof(*lost));
 *     int n_lost = score_lost(&t, lost);                  // contexts that can get no quality
 *     table_alloc_scores(&t, n_tiers + 1, &err);
 *     score_answers(&t, &embedder, &err);                 // similarity and quality
 *     score_predict(&t, NULL, &n_asked, &err);                 // what evp-plan goes by
 *     score_tiers(&t, &tiers, alpha, &err);               // TTFT and utility
 */
#ifndef EVP_SCORE_H
#define EVP_SCORE_H

#include "formats/context.h"
#include "formats/tiers.h"
#include "planner/belief.h"
#include "profiler/table/table.h"

#include <math.h>
#include <stdbool.h>

/* lost (C): whether a context has answers, but none of the reference. Returns how many are lost; -1: the reference
 * answered no question of any context. */
int score_lost(const struct table *t, bool *lost);

/* What makes vectors of texts: vector (n, width) of n texts, and the cosine of two of them. */
struct score_embedder {
    int width;
    int (*embed)(void *arg, const char *const *text, int n, float *vector, struct err *err);
    float (*cosine)(const float *a, const float *b, int width);
    void *arg;
};

/* Fills similarity, the scale, quality_train and quality_test with their deviations and numbers, which
 * table_alloc_scores() made.
 *
 * similarity: the cosine to the reference's answer. Equal texts give exactly 1, two empty ones too, whatever the cosine
 * is; NAN where either answer was not run. quality: the mean similarity over the questions of each context and split,
 * each clamped to [0, 1]; NAN where none was run. Its number is how many these are, and its deviation is theirs around
 * the mean, with n - 1; NAN below two. Questions of other splits count for neither.
 * unrelated: of each context the mean similarity, clamped too, between the reference's answers to two of its questions,
 * of any split; each question is compared with up to UNRELATED_BEFORE that come before it. NAN below two.
 * sampled_similarity: of the reference's answer and its sampled one, as similarity; same_meaning: of each context its
 * mean over questions of any split, each clamped; NAN without. */
enum { UNRELATED_BEFORE = 64 }; // more would take longer than embedding, and tell no more
int score_answers(struct table *t, const struct score_embedder *e, struct err *err) MUST_CHECK;

/* Has the reference answered any question a second time? */
bool score_has_sampled(const struct table *t);

/* The means of `unrelated` and `same_meaning` over contexts; NAN: the table does not say. */
double score_unrelated(const struct table *t);
double score_same_meaning(const struct table *t);

/* How far a quality is above unrelated, as a part of the way to `top`: 1, or same_meaning. Below 0: it is worse than
 * unrelated. NAN where there is no such way. */
static inline double score_kept(double quality, double unrelated, double top)
{
    return top > unrelated ? (quality - unrelated) / (top - unrelated) : (double)NAN;
}

/* The standard error of table_mean() of a config's quality: the contexts are a sample of contexts; of a single context
 * its questions are one of questions. NAN where there is one of either, or none. */
double score_error(const struct table *t, enum split split, int config);

/* Can the configs of a table be told apart by so many questions? Every two of them, but `none`, are compared question
 * by question of a split: they differ when the mean difference of their similarities is at least two of its standard
 * errors. Two that answer everything alike count as no pair. Questions are too few when fewer than half of the pairs
 * differ. Of very many questions the first are compared. */
struct score_resolution {
    int pairs, told; // told: those that differ
};

struct score_resolution score_resolve(const struct table *t, enum split split);

/* Adds predictions (planner/belief.h) of the train qualities, for every cell that has a size: one that was not asked is
 * believed to be like its config's others. prior: what was believed of other contexts, by this table's configs, or
 * NULL. Numbers and deviations that a table of version 1 lacks are taken from the similarities, if the qualities are
 * their means. *n_asked: on how many questions in the mean a prediction rests; 0: the table does not say, and there are
 * no predictions. */
int score_predict(struct table *t, const struct belief *prior, double *n_asked, struct err *err) MUST_CHECK;

/* The belief of a table by the configs of another, for score_predict(); NAN where the first lacks a config.
 * belief_release() frees. ERR_FORMAT: the table has none, or was made differently, or they have no config in common. */
int score_prior(struct belief *prior, const struct table *from, const struct table *t, struct err *err) MUST_CHECK;

/* Fills tier_name, ttft_s and utility, which table_alloc_scores() made for the tiers and "recompute", at frequency 1.
 * A variant that was not run has none on the tiers; only config 0 has any on "recompute". */
int score_tiers(struct table *t, const struct tiers *tiers, double alpha, struct err *err) MUST_CHECK;

#endif

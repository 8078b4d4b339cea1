/* score_say.c - one line per config, and the meaning of the numbers. */
#include "cmd/score_say.h"

#include "base/log.h"
#include "base/map.h"
#include "base/parse.h"
#include "cmd/summary.h"
#include "profiler/run/timing.h"
#include "profiler/score/exact.h"
#include "profiler/score/metric.h"
#include "profiler/score/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "-" for an unknown number. */
static const char *number(char out[TEXT_SHORT], double v, int digits)
{
    snprintf(out, TEXT_SHORT, "%.*f", digits, v);
    return isnan(v) ? "-" : out;
}

static const char *percent(char out[TEXT_SHORT], double share)
{
    snprintf(out, TEXT_SHORT, "%.0f %%", 100 * share);
    return isnan(share) ? "-" : out;
}

/* The mean share of facts in a split, and its error. */
static void put_facts(const struct table *t, enum split split, int v)
{
    bool train = split == SPLIT_TRAIN;
    const double *mean = train ? t->facts_train : t->facts_test;

    json_put_real(summary_json(), train ? "facts" : "facts_test", table_mean(t, mean, v));
    json_put_real(summary_json(), train ? "facts_error" : "facts_test_error",
                  score_mean_error(t, mean, t->facts_kept, split, v));
}

/* Tokens per second relative to the reference, at each batch. */
static void put_speed(const struct table *t, int v)
{
    char key[TEXT_SHORT];

    for (int b = 0; b < TABLE_BATCHES; b++) {
        snprintf(key, sizeof(key), "speed_%d", table_batch[b]);
        json_put_real(summary_json(), key, score_speed(t, v, b));
    }
}

static void put_summary(const struct table *t)
{
    json_put_real(summary_json(), "unrelated", score_unrelated(t));
    json_put_real(summary_json(), "same_meaning", score_same_meaning(t));
    json_begin(summary_json(), "configs", '[');
    for (int v = 0; v < t->n_configs; v++) {
        json_begin(summary_json(), NULL, '{');
        json_put_text(summary_json(), "config", t->config_name[v]);
        json_put_real(summary_json(), "quality", table_mean(t, t->quality_train, v));
        json_put_real(summary_json(), "quality_error", score_error(t, SPLIT_TRAIN, v));
        json_put_real(summary_json(), "quality_test", table_mean(t, t->quality_test, v));
        json_put_real(summary_json(), "quality_test_error", score_error(t, SPLIT_TEST, v));
        put_facts(t, SPLIT_TRAIN, v);
        put_facts(t, SPLIT_TEST, v);
        json_put_real(summary_json(), "token_f1", table_mean(t, t->token_f1_train, v));
        json_put_real(summary_json(), "token_f1_test", table_mean(t, t->token_f1_test, v));
        json_put_real(summary_json(), "gold", table_mean(t, t->gold_mean, v));
        json_put_real(summary_json(), "size_fraction", table_mean(t, t->size_frac, v));
        double read = table_read_frac(t, v);
        if (!isnan(read))
            json_put_real(summary_json(), "read_fraction", read);
        put_speed(t, v);
        json_end(summary_json(), '}');
    }
    json_end(summary_json(), ']');
}

/* Minimum of same_meaning - unrelated for a quality between them to mean something: the mean of 30 answers is known to
 * about 0.05. */
static const double SURE_ENOUGH = 0.1;

enum { SPLIT_CELLS = 4 * TEXT_SHORT + 8 };

static void say_facts(const struct table *t)
{
    int n, other;
    struct err err;

    log_info("facts: the share of numbers, dates, names and negations in the uncompressed cache's answers that is kept "
             "(docs/profiling.md); similarity hardly sees them");
    if (exact_languages(t, &n, &other, &err) == 0 && other)
        log_info("%d of %d answers of the uncompressed cache are not in English: facts there are numbers and dates in "
                 "digits alone",
                 other, n);
}

static void say_scale(const struct table *t)
{
    double unrelated = score_unrelated(t), same = score_same_meaning(t);

    if (*t->measure) {
        log_info("mean quality over %d contexts: how likely, per token, variants make the answers of the uncompressed "
                 "cache, compared with that cache",
                 t->n_contexts);
        return;
    }
    log_info("mean quality over %d contexts: similarity to the answers of the uncompressed cache", t->n_contexts);
    if (isnan(unrelated))
        log_info("the quality of unrelated answers is unknown: no context has two questions");
    else
        log_info("unrelated answers, to other questions of the same context, score %.3f; kept: (quality - unrelated) / "
                 "(1 - unrelated)",
                 unrelated);
    if (!isnan(same))
        log_info(
            "second answers of the uncompressed cache, sampled at temperature %g, score %.3f: so near is the model to "
            "itself",
            t->temperature, same);
    say_facts(t);
}

static void say_speed(const struct table *t, enum score_detail detail)
{
    if (score_has_speed(t))
        log_info("tok/s@%d: tokens per second of %d answers that decode together, relative to the uncompressed cache%s",
                 table_batch[TABLE_BATCHES - 1], table_batch[TABLE_BATCHES - 1],
                 detail == SCORE_ALL ? "; so @1 and @8" : " (-v: of 1 and 8, too)");
}

/* What is printed of a config and one split of the questions. */
static const char *split_cells(char out[SPLIT_CELLS], const struct table *t, enum split split, int v)
{
    char cell[4][TEXT_SHORT];
    bool train = split == SPLIT_TRAIN;
    double quality = table_mean(t, train ? t->quality_train : t->quality_test, v);
    double facts = table_mean(t, train ? t->facts_train : t->facts_test, v);

    snprintf(out, SPLIT_CELLS, "%7s %7s %6s %6s", number(cell[0], quality, 4),
             number(cell[1], score_error(t, split, v), 4), percent(cell[2], score_kept(quality, score_unrelated(t), 1)),
             percent(cell[3], facts));
    return out;
}

/* The columns after the size: relative tokens per second at the batches from `first`. v < 0: their head. */
static const char *speed_cells(char out[SPLIT_CELLS], const struct table *t, int v, int first)
{
    char cell[TEXT_SHORT];
    int at = 0;

    out[0] = '\0';
    for (int b = first; b < TABLE_BATCHES && score_has_speed(t); b++) {
        double x = v < 0 ? (double)NAN : score_speed(t, v, b);
        if (v < 0)
            snprintf(cell, sizeof(cell), "tok/s@%d", table_batch[b]);
        else
            snprintf(cell, sizeof(cell), isnan(x) ? "-" : "%.2fx", x);
        at += snprintf(out + at, SPLIT_CELLS - (size_t)at, " %8s", cell);
    }
    return out;
}

/* The column after the size: how much less is read than of the uncompressed cache, where a config keeps what it does
 * not read. v < 0: its head. */
static const char *read_cell(char out[TEXT_SHORT], const struct table *t, int v)
{
    double read = v < 0 ? (double)NAN : table_read_frac(t, v);

    out[0] = '\0';
    if (t->cell_bytes_read && isnan(read))
        snprintf(out, TEXT_SHORT, " %9s", v < 0 ? "read" : "-");
    else if (t->cell_bytes_read)
        snprintf(out, TEXT_SHORT, " %8.2fx", 1 / read);
    return out;
}

static void say_row(const struct table *t, int v, int width, bool gold, int first)
{
    char train[SPLIT_CELLS], test[SPLIT_CELLS], score[TEXT_SHORT], with_gold[TEXT_SHORT + 2] = "", speed[SPLIT_CELLS];
    char read[TEXT_SHORT];

    if (gold)
        snprintf(with_gold, sizeof(with_gold), " %7s", number(score, table_mean(t, t->gold_mean, v), 4));
    log_info("%-*s %s %s%s %8.2fx%s%s", width, t->config_name[v], split_cells(train, t, SPLIT_TRAIN, v),
             split_cells(test, t, SPLIT_TEST, v), with_gold, 1 / table_mean(t, t->size_frac, v), read_cell(read, t, v),
             speed_cells(speed, t, v, first));
}

static bool has_gold(const struct table *t)
{
    for (int v = 0; v < t->n_configs; v++)
        if (!isnan(table_mean(t, t->gold_mean, v)))
            return true;
    return false;
}

/* The metric of column "gold", per dataset. */
static void say_metrics(const struct table *t)
{
    enum { DATASETS = 8 };
    struct map seen = { 0 };

    for (int q = 0; q < t->n_questions && seen.n < DATASETS; q++) {
        const char *dataset = t->context_dataset[t->question_context[q]];
        bool added = false;
        if (!*t->gold_answers[q] || metric_of(dataset) == METRIC_NONE)
            continue;
        map_add(&seen, dataset, strlen(dataset), &added);
        if (added)
            log_info("gold of %s: %s with the dataset's own answers", dataset, metric_name(metric_of(dataset)));
    }
    map_release(&seen);
}

/* If a model contradicts itself, an answer that differs from its first means little. */
static void warn_of_unsure(const struct table *t)
{
    double unrelated = score_unrelated(t), same = score_same_meaning(t);

    if (same - unrelated < SURE_ENOUGH)
        log_warn(
            "two answers of this model to one question score %.3f, hardly more than unrelated ones, %.3f: the model "
            "is unsure of its answers, and quality measures how often the words are the same",
            same, unrelated);
}

static void warn_of_few(const struct table *t)
{
    struct score_resolution r = score_resolve(t, SPLIT_TEST);

    if (r.pairs > 2 * r.told)
        log_warn("the held-out questions are too few to tell the configs apart: %d of %d pairs differ by less than two "
                 "standard errors; use more questions (evp-qgen --per-context) or contexts",
                 r.pairs - r.told, r.pairs);
}

/* What is to be gained by asking about each context: no more than contexts differ. */
static void say_ceiling(const struct table *t)
{
    double between = 0, within = 0;
    int n = 0;

    for (int v = 1; v < t->n_configs && t->belief_between; v++)
        if (!isnan(t->belief_between[v])) {
            between += t->belief_between[v];
            within += t->belief_within[v];
            n++;
        }
    if (between > 0)
        log_info("qualities of a config differ by %.3f between contexts, and answers by %.3f between the questions of "
                 "one: %.0f question%s about a context tell as much of it as the config's mean over all contexts",
                 sqrt(between / n), sqrt(within / n), ceil(within / between), within > between ? "s" : "");
}

void score_say(const struct table *t, enum score_detail detail)
{
    bool gold = has_gold(t);
    int width = 6, first = detail == SCORE_ALL ? 0 : TABLE_BATCHES - 1;
    char speed[SPLIT_CELLS], read[TEXT_SHORT];

    for (int v = 0; v < t->n_configs; v++)
        width = (int)strlen(t->config_name[v]) > width ? (int)strlen(t->config_name[v]) : width;
    put_summary(t);
    say_scale(t);
    say_speed(t, detail);
    log_info("%-*s %7s %7s %6s %6s %7s %7s %6s %6s%s %9s%s%s", width, "config", "train", "error", "kept", "facts",
             "test", "error", "kept", "facts", gold ? "    gold" : "", "size", read_cell(read, t, -1),
             speed_cells(speed, t, -1, first));
    for (int v = 0; v < t->n_configs; v++)
        say_row(t, v, width, gold, first);
    if (gold)
        say_metrics(t);
    say_ceiling(t);
    warn_of_unsure(t);
    warn_of_few(t);
}

void score_say_noise(const struct table *t)
{
    int n = 0, worst = 0;

    for (int c = 0; c < t->n_contexts; c++) {
        n += timing_is_noisy(t->prefill_s[c], t->prefill_spread[c]);
        worst = t->prefill_spread[c] > t->prefill_spread[worst] || isnan(t->prefill_spread[worst]) ? c : worst;
    }
    if (n)
        log_warn(
            "prefill times of %d contexts are noisy, '%s' took up to %.0f %% longer than its fastest: TTFT and the "
            "plan use the fastest",
            n, t->context_id[worst], 100 * t->prefill_spread[worst]);
}

/* table_check.c - the rules of a table's values, checked after reading and before writing. Shapes are right by
 * construction: arrays are as long as the counts say. Several threads check a long column, each up to the first fault
 * of its share; the message is about the first fault of the column. */
#include "base/digest.h"
#include "base/map.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "formats/context.h"
#include "profiler/table/gold_list.h"
#include "profiler/table/table_column.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { SHARE = 1 << 16 }; /* elements that a thread takes at once */

/* Cosines of unit vectors in float may exceed 1 by rounding. */
#define COSINE_MAX 1.001F

static int check_counts(const struct table *t, struct err *err)
{
    if (!(t->temperature >= 0 && isfinite(t->temperature)))
        return err_set(err, ERR_FORMAT, "its temperature is not a number >= 0");
    if (t->n_contexts < 1 || t->n_configs < 1)
        return err_set(err, ERR_FORMAT, "it has no %s", t->n_contexts < 1 ? "contexts" : "configs");
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        size_t n;
        if (!column_count(t, &table_columns[i], &n))
            return err_set(err, ERR_FORMAT, "'%s' has more elements than a table can hold", table_columns[i].path);
    }
    return 0;
}

/* ---- long columns -------------------------------------------------------------------- */

struct search {
    const struct table *t;
    const char *const *text;
    size_t n;
    bool (*is_wrong)(const struct search *s, size_t i);
    atomic_size_t first;
};

static void search_share(void *arg, int share)
{
    struct search *s = arg;
    size_t i = (size_t)share * SHARE, end = s->n - i < SHARE ? s->n : i + SHARE, first = s->first;

    while (i < end && i < first && !s->is_wrong(s, i))
        i++;
    while (i < end && i < first && !atomic_compare_exchange_weak(&s->first, &first, i))
        ;
}

/* The first wrong element; s->n: none. */
static size_t find_wrong(struct search *s)
{
    s->first = s->n;
    parallel_do(parallel_threads(), (int)((s->n + SHARE - 1) / SHARE), search_share, s);
    return s->first;
}

static bool is_no_text(const struct search *s, size_t i)
{
    return !utf8_valid(s->text[i], strlen(s->text[i]));
}

static int check_texts(const struct table *t, struct err *err)
{
    for (int i = 0; i < TABLE_COLUMNS; i++) {
        const struct column *c = &table_columns[i];
        const char *const *text = column_get(t, c);
        size_t n = 0;
        if (c->type != COLUMN_TEXT || !text || !column_count(t, c, &n))
            continue;
        size_t wrong = find_wrong(&(struct search){ .text = text, .n = n, .is_wrong = is_no_text });
        if (wrong < n)
            return err_set(err, ERR_FORMAT, "'%s' element %zu is not UTF-8", c->path, wrong);
    }
    return 0;
}

/* Names that other files refer to must not be empty or repeated. Adds them to `seen`. */
static int check_names(struct map *seen, const char *path, const char *const *name, int n, struct err *err)
{
    if (name && !map_reserve(seen, n))
        return err_nomem(err);
    for (int i = 0; name && i < n; i++) {
        bool added = false;
        if (!*name[i])
            return err_set(err, ERR_FORMAT, "'%s' element %d is empty", path, i);
        if (map_add(seen, name[i], strlen(name[i]), &added) == MAP_NOMEM)
            return err_nomem(err);
        if (!added)
            return err_set(err, ERR_FORMAT, "'%s' has '%s' twice", path, name[i]);
    }
    return 0;
}

static int check_all_names(const struct table *t, struct map *ids, struct err *err)
{
    struct map configs = { 0 }, questions = { 0 }, tiers = { 0 };
    int code = check_names(ids, "/contexts/id", t->context_id, t->n_contexts, err);

    if (!code)
        code = check_names(&configs, "/configs/name", t->config_name, t->n_configs, err);
    if (!code)
        code = check_names(&questions, "/questions/id", t->question_id, t->n_questions, err);
    if (!code)
        code = check_names(&tiers, "/tiers/name", t->tier_name, t->n_tiers, err);
    map_release(&configs);
    map_release(&questions);
    map_release(&tiers);
    return code;
}

static bool is_digest(const char *s)
{
    return *s == '\0' || digest_is_hex(s);
}

static bool is_amount(double s)
{
    return isnan(s) || (s >= 0 && isfinite(s));
}

static bool is_quality(double q)
{
    return isnan(q) || (q >= 0 && q <= 1);
}

/* A limit far above any time keeps a plan's sums finite. */
static bool is_seconds(double s)
{
    return isnan(s) || (s >= 0 && s <= 1e30);
}

/* All digests of digest_chain(), or nothing. */
static bool is_chain(const char *s, int64_t n_tokens)
{
    enum { HEX = DIGEST_HEX - 1 };
    size_t n = strlen(s);
    char one[DIGEST_HEX] = "";

    if (n % HEX || (n && n_tokens >= 0 && n / HEX != (size_t)n_tokens / DIGEST_CHUNK))
        return false;
    for (; *s; s += HEX) {
        memcpy(one, s, HEX);
        if (!digest_is_hex(one))
            return false;
    }
    return true;
}

static int check_contexts(const struct table *t, struct err *err)
{
    for (int i = 0; i < t->n_contexts; i++) {
        const char *wrong = NULL;
        if (!is_digest(t->context_token_digest[i]))
            wrong = "its token_digest is not a SHA-256";
        else if (t->n_tokens[i] < -1 || t->n_tokens[i] == 0)
            wrong = "its n_tokens is not a count";
        else if (t->kv_bytes[i] < -1 || t->kv_bytes[i] == 0)
            wrong = "its kv_bytes is not a size";
        else if (!is_seconds(t->prefill_s[i]) || !is_seconds(t->question_s[i]))
            wrong = "its prefill_s or question_s is not a number of seconds";
        else if (t->prefill_n && (t->prefill_n[i] < -1 || t->prefill_n[i] == 0))
            wrong = "its prefill_n is not a count";
        else if (t->prefill_spread && (!is_amount(t->prefill_spread[i]) || !is_amount(t->question_spread[i])))
            wrong = "its prefill_spread or question_spread is not a ratio";
        else if (t->prefill_flop && !is_amount(t->prefill_flop[i]))
            wrong = "its prefill_flop is not a number of operations";
        else if (t->profiled_at && !is_amount(t->profiled_at[i]))
            wrong = "its profiled_at is not a time";
        else if (t->unrelated && !is_quality(t->unrelated[i]))
            wrong = "its unrelated is not within 0 and 1";
        else if (t->same_meaning && !is_quality(t->same_meaning[i]))
            wrong = "its same_meaning is not within 0 and 1";
        else if (t->context_prefix_digests && !is_chain(t->context_prefix_digests[i], t->n_tokens[i]))
            wrong = "its prefix_digests are not the SHA-256 of every 256 tokens";
        if (wrong)
            return err_set(err, ERR_FORMAT, "context '%s': %s", t->context_id[i], wrong);
    }
    return 0;
}

static const char *sampled_fault(const struct table *t, int q)
{
    if (t->sampled_n_tokens[q] < -1)
        return "n_tokens is not a count";
    if (t->sampled_n_tokens[q] <= 0 && *t->sampled_text[q])
        return "a text without tokens";
    if (!t->sampled_similarity || isnan(t->sampled_similarity[q]))
        return NULL;
    if (!(fabsf(t->sampled_similarity[q]) <= COSINE_MAX))
        return "similarity is not a cosine";
    return t->sampled_n_tokens[q] < 0 ? "a similarity without an answer" : NULL;
}

static int check_questions(const struct table *t, struct err *err)
{
    for (int i = 0; i < t->n_questions; i++) {
        if (t->question_context[i] < 0 || t->question_context[i] >= t->n_contexts)
            return err_set(err, ERR_FORMAT, "question '%s' is about context row %lld, not one of 0 to %d",
                           t->question_id[i], (long long)t->question_context[i], t->n_contexts - 1);
        if (strcmp(t->question_split[i], "train") != 0 && strcmp(t->question_split[i], "test") != 0)
            return err_set(err, ERR_FORMAT, "question '%s' has split '%s', not 'train' or 'test'", t->question_id[i],
                           t->question_split[i]);
        if (t->asked_at && !(isnan(t->asked_at[i]) || (t->asked_at[i] >= 0 && t->asked_at[i] <= QUESTION_ASKED_MAX)))
            return err_set(err, ERR_FORMAT, "question '%s': its asked_at is not a number of seconds since 1970",
                           t->question_id[i]);
        const char *wrong = t->sampled_text ? sampled_fault(t, i) : NULL;
        if (wrong)
            return err_set(err, ERR_FORMAT, "the sampled answer to '%s': %s", t->question_id[i], wrong);
        if (t->gold_answers && !gold_is_list(t->gold_answers[i]))
            return err_set(err, ERR_FORMAT, "question '%s' has gold answers that are not a list of texts in JSON",
                           t->question_id[i]);
    }
    return 0;
}

static const double LOG_MAX = 1e-6; /* rounding of a probability of 1 */

static const char *answer_fault(const struct table *t, size_t i)
{
    if (t->answer_n_tokens[i] < -1)
        return "n_tokens is not a count";
    if (t->answer_n_tokens[i] <= 0 && *t->answer_text[i])
        return "a text without tokens";
    if (t->log_likelihood && !isnan(t->log_likelihood[i]) &&
        !(t->log_likelihood[i] <= (float)LOG_MAX && isfinite(t->log_likelihood[i])))
        return "log_likelihood is not the logarithm of a probability";
    if (t->log_likelihood && !isnan(t->log_likelihood[i]) && t->answer_n_tokens[i] < 0)
        return "a log_likelihood without an answer";
    if (t->similarity && !isnan(t->similarity[i]) && !(fabsf(t->similarity[i]) <= COSINE_MAX))
        return "similarity is not a cosine";
    if (t->similarity && !isnan(t->similarity[i]) && t->answer_n_tokens[i] < 0)
        return "a similarity without an answer";
    if (t->gold_score && !is_quality((double)t->gold_score[i]))
        return "gold/score is not within 0 and 1";
    if (t->gold_score && !isnan(t->gold_score[i]) && t->answer_n_tokens[i] < 0)
        return "a gold score without an answer";
    if ((t->facts_kept && !is_quality((double)t->facts_kept[i])) ||
        (t->token_f1 && !is_quality((double)t->token_f1[i])))
        return "facts_kept or token_f1 is not within 0 and 1";
    if (t->answer_n_tokens[i] < 0 &&
        ((t->facts_kept && !isnan(t->facts_kept[i])) || (t->token_f1 && !isnan(t->token_f1[i]))))
        return "facts_kept or token_f1 without an answer";
    return NULL;
}

static int check_answers(const struct table *t, struct err *err)
{
    for (size_t i = 0; i < table_n_answers(t); i++) {
        const char *wrong = answer_fault(t, i);
        if (wrong)
            return err_set(err, ERR_FORMAT, "answer to '%s' with '%s': %s", t->question_id[i / (size_t)t->n_configs],
                           t->config_name[i % (size_t)t->n_configs], wrong);
    }
    return 0;
}

static const char *point_fault(const struct table *t, int i)
{
    int64_t c = t->curve_context[i];
    bool first = i == 0 || t->curve_context[i - 1] != c;

    if (c < 0 || c >= t->n_contexts || (i > 0 && t->curve_context[i - 1] > c))
        return "context is not a row of contexts, in their order";
    if (t->curve_n_tokens[i] <= (first ? 0 : t->curve_n_tokens[i - 1]) ||
        (t->n_tokens[c] >= 0 && t->curve_n_tokens[i] > t->n_tokens[c]))
        return "n_tokens does not rise, or is above the context's";
    if (!isfinite(t->curve_s[i]) || t->curve_s[i] < (first ? 0 : t->curve_s[i - 1]))
        return "seconds is not a number of seconds, or falls";
    return NULL;
}

static int check_curve(const struct table *t, struct err *err)
{
    for (int i = 0; t->curve_context && i < t->n_points; i++) {
        const char *wrong = point_fault(t, i);
        if (wrong)
            return err_set(err, ERR_FORMAT, "'/prefill_curve' element %d: %s", i, wrong);
    }
    return 0;
}

static bool is_positive(double v)
{
    return v > 0 && isfinite(v);
}

/* Checks a quality's deviation and number, if present. */
static const char *spread_fault(const double *quality, const double *std, const int32_t *n, size_t i)
{
    bool none = isnan(quality[i]);

    if (std && !isnan(std[i]) && (none || !(std[i] >= 0 && std[i] <= 1)))
        return none ? "a deviation without a quality" : "the deviation of a quality is not within 0 and 1";
    if (n && n[i] < -1)
        return "the number of a quality is not a count";
    if (n && (none ? n[i] > 0 : n[i] == 0))
        return none ? "a number without a quality" : "a quality without a number";
    return NULL;
}

static const char *prediction_fault(const struct table *t, size_t i)
{
    double quality = t->predicted_quality[i], sd = (double)t->predicted_sd[i];

    if (!is_quality(quality))
        return "predicted/quality is not within 0 and 1";
    if (isnan(quality) ? !isnan(sd) : !(sd >= 0 && sd <= 1))
        return isnan(quality) ? "predicted/sd without a quality" : "predicted/sd is not within 0 and 1";
    if (t->cell_asked && t->cell_asked[i] < 0)
        return "the number of questions asked is not a count";
    if (t->predicted_facts &&
        !(is_quality((double)t->predicted_facts[i]) && is_quality((double)t->predicted_facts_sd[i])))
        return "predicted/facts or its sd is not within 0 and 1";
    return NULL;
}

/* The means of facts kept and token F1. */
static const char *exact_fault(const struct table *t, size_t i)
{
    const double *const means[] = { t->facts_train, t->facts_test, t->token_f1_train, t->token_f1_test };

    for (size_t k = 0; k < sizeof(means) / sizeof(*means); k++) {
        if (means[k] && !is_quality(means[k][i]))
            return "a mean of facts or of token_f1 is not within 0 and 1";
        if (means[k] && t->cell_bytes[i] < 0 && !isnan(means[k][i]))
            return "a mean of facts or of token_f1 without bytes";
    }
    return NULL;
}

static const char *decode_fault(const struct table *t, size_t i)
{
    for (int b = 0; b < TABLE_BATCHES; b++) {
        if (!t->decode_s[b] || isnan(t->decode_s[b][i]))
            continue;
        if (!is_positive(t->decode_s[b][i]) || !is_seconds(t->decode_s[b][i]))
            return "the time of a generated token is not a number of seconds above 0";
        if (t->cell_bytes[i] < 0)
            return "the time of a generated token without bytes";
    }
    return NULL;
}

static const char *cell_fault(const struct table *t, size_t i)
{
    bool run = t->cell_bytes[i] >= 0;

    if (t->cell_bytes[i] < -1)
        return "bytes is not a size";
    if (t->cell_bytes_read && t->cell_bytes_read[i] < -1)
        return "bytes_read is not a size";
    if (t->cell_bytes_read && t->cell_bytes_read[i] > t->cell_bytes[i])
        return run ? "bytes_read is more than bytes" : "bytes_read without bytes";
    if (run ? !is_positive(t->size_frac[i]) : !isnan(t->size_frac[i]))
        return run ? "size_frac is not a fraction" : "size_frac without bytes";
    if (t->keep_frac && (run ? !(is_positive(t->keep_frac[i]) && t->keep_frac[i] <= 1) : !isnan(t->keep_frac[i])))
        return run ? "keep_frac is not a fraction" : "keep_frac without bytes";
    if (!is_seconds(t->decompress_s[i]) || (t->compress_s && !is_seconds(t->compress_s[i])))
        return "compress_s or decompress_s is not a number of seconds";
    if (!run && (!isnan(t->decompress_s[i]) || (t->compress_s && !isnan(t->compress_s[i]))))
        return "a time without bytes";
    const char *wrong = decode_fault(t, i);
    if (!wrong && t->predicted_quality)
        wrong = prediction_fault(t, i);
    if (wrong || !t->quality_train)
        return wrong;
    double train = t->quality_train[i], test = t->quality_test[i];
    if (!is_quality(train) || !is_quality(test))
        return is_quality(train) ? "quality/test is not within 0 and 1" : "quality/train is not within 0 and 1";
    if (!run && !(isnan(train) && isnan(test)))
        return "a quality without bytes";
    if (t->gold_mean && (!is_quality(t->gold_mean[i]) || (!run && !isnan(t->gold_mean[i]))))
        return run ? "gold/mean is not within 0 and 1" : "gold/mean without bytes";
    wrong = exact_fault(t, i);
    if (!wrong)
        wrong = spread_fault(t->quality_train, t->quality_train_std, t->quality_train_n, i);
    return wrong ? wrong : spread_fault(t->quality_test, t->quality_test_std, t->quality_test_n, i);
}

static bool is_wrong_cell(const struct search *s, size_t i)
{
    return cell_fault(s->t, i);
}

static int check_cells(const struct table *t, struct err *err)
{
    size_t v = (size_t)t->n_configs, n = table_n_cells(t);
    size_t wrong = find_wrong(&(struct search){ .t = t, .n = n, .is_wrong = is_wrong_cell });

    if (wrong < n)
        return err_set(err, ERR_FORMAT, "context '%s' with '%s': %s", t->context_id[wrong / v],
                       t->config_name[wrong % v], cell_fault(t, wrong));
    return 0;
}

static int check_belief(const struct table *t, struct err *err)
{
    const struct {
        const char *path;
        const double *of;
    } column[] = { { "/belief/mean", t->belief_mean },
                   { "/belief/between", t->belief_between },
                   { "/belief/within", t->belief_within } };

    for (size_t k = 0; k < sizeof(column) / sizeof(*column); k++)
        for (int v = 0; column[k].of && v < t->n_configs; v++)
            if (!is_quality(column[k].of[v]))
                return err_set(err, ERR_FORMAT, "'%s' of config '%s' is not within 0 and 1", column[k].path,
                               t->config_name[v]);
    return 0;
}

static int check_tiers(const struct table *t, struct err *err)
{
    size_t n = table_n_cells(t) * (size_t)t->n_tiers;

    for (size_t i = 0; t->utility && i < n; i++)
        if (isinf(t->utility[i]) || !is_amount(t->ttft_s[i]))
            return err_set(err, ERR_FORMAT, "'/utility' element %zu is not a utility or not a number of seconds", i);
    return 0;
}

int table_check_ids(const struct table *t, struct map *ids, struct err *err)
{
    if (check_counts(t, err) || check_texts(t, err) || check_all_names(t, ids, err))
        return err->code;
    if (strcmp(t->config_name[0], "none") != 0)
        return err_set(err, ERR_FORMAT, "its first config is '%s', not 'none'", t->config_name[0]);
    if (check_contexts(t, err) || check_curve(t, err) || (t->question_id && check_questions(t, err)) ||
        check_cells(t, err) || check_belief(t, err) || (t->answer_text && check_answers(t, err)))
        return err->code;
    return check_tiers(t, err);
}

int table_check(const struct table *t, struct err *err)
{
    struct map ids = { 0 };
    int code = table_check_ids(t, &ids, err);

    map_release(&ids);
    return code;
}

/* show_table.c - profiles and utility tables: a line per config, with means over the contexts, and a line per
 * context. */
#include "show/show.h"

#include "base/map.h"
#include "profiler/score/score.h"
#include "profiler/table/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* Number of contexts that were run with a config. */
static int count_run(const struct table *t, int config)
{
    int n = 0;

    for (int c = 0; c < t->n_contexts; c++)
        n += t->cell_bytes[table_cell(t, c, config)] >= 0;
    return n;
}

/* Number of answers behind the qualities of a config; -1: unknown. */
static int64_t count_scored(const struct table *t, const int32_t *column, int config)
{
    int64_t n = -1;

    for (int c = 0; column && c < t->n_contexts; c++) {
        int32_t more = column[table_cell(t, c, config)];
        if (more >= 0)
            n = (n < 0 ? 0 : n) + more;
    }
    return n;
}

static void put_config(struct sheet *s, const struct table *t, int v)
{
    sheet_text(s, NULL, t->config_name[v]);
    sheet_int(s, NULL, count_run(t, v));
    sheet_times(s, NULL, 1 / table_mean(t, t->size_frac, v));
    sheet_real(s, NULL, table_mean(t, t->keep_frac, v), 3);
    sheet_real(s, NULL, table_mean(t, t->quality_train, v), 3);
    sheet_real(s, NULL, table_mean(t, t->quality_train_std, v), 3);
    sheet_int(s, NULL, count_scored(t, t->quality_train_n, v));
    sheet_real(s, NULL, table_mean(t, t->quality_test, v), 3);
    sheet_real(s, NULL, table_mean(t, t->quality_test_std, v), 3);
    sheet_int(s, NULL, count_scored(t, t->quality_test_n, v));
    sheet_real(s, NULL, table_mean(t, t->gold_mean, v), 3);
    sheet_real(s, NULL, table_mean(t, t->facts_train, v), 3);
    sheet_real(s, NULL, table_mean(t, t->facts_test, v), 3);
    sheet_real(s, NULL, table_mean(t, t->token_f1_train, v), 3);
    sheet_real(s, NULL, table_mean(t, t->token_f1_test, v), 3);
    sheet_seconds(s, NULL, table_mean(t, t->compress_s, v));
    sheet_seconds(s, NULL, table_mean(t, t->decompress_s, v));
    for (int b = 0; b < TABLE_BATCHES; b++)
        sheet_seconds(s, NULL, table_mean(t, t->decode_s[b], v));
    if (t->cell_bytes_read)
        sheet_times(s, NULL, 1 / table_read_frac(t, v));
}

/* "2026-03-01T23:59:59Z"; NULL when unknown, or when no calendar has it. */
static const char *text_time(char out[32], double seconds)
{
    struct tm day;
    time_t when = seconds >= 0 && seconds < 1e11 ? (time_t)seconds : -1;

    if (when < 0 || !gmtime_r(&when, &day) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &day))
        return NULL;
    return out;
}

static void put_context(struct sheet *s, const struct table *t, int c)
{
    char when[32];

    sheet_text(s, NULL, t->context_id[c]);
    sheet_text(s, NULL, t->context_dataset[c]);
    sheet_int(s, NULL, t->n_tokens[c]);
    sheet_bytes(s, NULL, t->kv_bytes[c]);
    sheet_seconds(s, NULL, t->prefill_s[c]);
    sheet_real(s, NULL, t->prefill_spread[c], 2);
    sheet_seconds(s, NULL, t->question_s[c]);
    sheet_real(s, NULL, t->question_spread[c], 2);
    sheet_text(s, NULL, text_time(when, t->profiled_at[c]));
}

/* The origins of the questions, each with its count: "api:m 12, dataset 3". */
static int put_origins(struct sheet *s, const struct table *t, struct err *err)
{
    struct map origins = { 0 };
    struct buf text = { 0 };
    int *count = calloc((size_t)t->n_questions + 1, sizeof(*count)), code = count ? 0 : err_nomem(err);

    for (int q = 0; q < t->n_questions && !code; q++) {
        int at = map_add(&origins, t->question_origin[q], strlen(t->question_origin[q]), NULL);
        if (at == MAP_NOMEM)
            code = err_nomem(err);
        else
            count[at]++;
    }
    for (int i = 0; i < origins.n && !code; i++)
        buf_printf(&text, "%s%s %d", i ? ", " : "", *origins.at[i].key ? origins.at[i].key : "unknown", count[i]);
    if (!code)
        sheet_text(s, "question_origins", or_null(buf_str(&text)));
    free(count);
    map_release(&origins);
    buf_release(&text);
    return code;
}

static void put_table(struct sheet *s, const struct table *t)
{
    static const char *const configs[] = {
        "config",     "n_contexts",        "size_x",       "keep_frac",  "quality_train",
        "train_std",  "n_train_questions", "quality_test", "test_std",   "n_test_questions",
        "gold",       "facts_train",       "facts_test",   "f1_train",   "f1_test",
        "compress_s", "decompress_s",      "decode_1_s",   "decode_8_s", "decode_32_s",
        "read_x"
    };
    static const char *const contexts[] = { "context",    "dataset",         "n_tokens",
                                            "kv_bytes",   "prefill_s",       "prefill_spread",
                                            "question_s", "question_spread", "profiled_at" };

    sheet_table(s, "configs", configs, t->cell_bytes_read ? 21 : 20);
    for (int v = 0; v < t->n_configs; v++)
        put_config(s, t, v);
    sheet_table_end(s);
    sheet_table(s, "contexts", contexts, 9);
    for (int c = 0; c < t->n_contexts; c++)
        put_context(s, t, c);
    sheet_table_end(s);
}

int show_table(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct table t;
    int train = 0;

    (void)depth; /* the reader checks everything */
    if (table_read(&t, path, TABLE_ALL, err))
        return err->code;
    for (int q = 0; q < t.n_questions; q++)
        train += strcmp(t.question_split[q], "train") == 0;
    sheet_text(s, "model", or_null(t.model));
    sheet_text(s, "model_digest", or_null(t.model_digest));
    sheet_text(s, "backend", or_null(t.backend));
    sheet_text(s, "dtype", or_null(t.dtype));
    sheet_int(s, "max_new_tokens", t.max_new_tokens);
    sheet_real(s, "temperature", t.temperature > 0 ? t.temperature : (double)NAN, 2);
    if (*t.measure)
        sheet_text(s, "measure", t.measure);
    sheet_int(s, "n_contexts", t.n_contexts);
    sheet_int(s, "n_configs", t.n_configs);
    sheet_int(s, "n_train_questions", train);
    sheet_int(s, "n_test_questions", t.n_questions - train);
    int code = put_origins(s, &t, err);
    sheet_int(s, "n_prefill_points", t.n_points);
    sheet_text(s, "scored_with", or_null(t.embedder_digest));
    sheet_real(s, "unrelated", score_unrelated(&t), 3);
    sheet_real(s, "same_meaning", score_same_meaning(&t), 3);
    sheet_int(s, "n_tiers", t.n_tiers);
    put_table(s, &t);
    table_release(&t);
    return code;
}

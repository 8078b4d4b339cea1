/* The profile and utility table: one line per config, with means over the contexts, and one line per context. */
#include "cmd/show.h"
#include "profiler/table.h"

#include <string.h>

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* How many contexts were run with a config. */
static int count_run(const struct table *t, int config)
{
    int n = 0;

    for (int c = 0; c < t->n_contexts; c++)
        n += t->cell_bytes[table_cell(t, c, config)] >= 0;
    return n;
}

static void put_config(struct sheet *s, const struct table *t, int v)
{
    sheet_text(s, NULL, t->config_name[v]);
    sheet_int(s, NULL, count_run(t, v));
    sheet_times(s, NULL, 1 / table_mean(t, t->size_frac, v));
    sheet_real(s, NULL, table_mean(t, t->keep_frac, v), 3);
    sheet_real(s, NULL, table_mean(t, t->quality_train, v), 3);
    sheet_real(s, NULL, table_mean(t, t->quality_test, v), 3);
    sheet_seconds(s, NULL, table_mean(t, t->compress_s, v));
    sheet_seconds(s, NULL, table_mean(t, t->decompress_s, v));
}

static void put_table(struct sheet *s, const struct table *t)
{
    static const char *const configs[] = { "config",        "n_contexts",   "size_x",     "keep_frac",
                                           "quality_train", "quality_test", "compress_s", "decompress_s" };
    static const char *const contexts[] = { "context", "dataset", "n_tokens", "kv_bytes", "prefill_s", "question_s" };

    sheet_table(s, "configs", configs, 8);
    for (int v = 0; v < t->n_configs; v++)
        put_config(s, t, v);
    sheet_table_end(s);
    sheet_table(s, "contexts", contexts, 6);
    for (int c = 0; c < t->n_contexts; c++) {
        sheet_text(s, NULL, t->context_id[c]);
        sheet_text(s, NULL, t->context_dataset[c]);
        sheet_int(s, NULL, t->n_tokens[c]);
        sheet_bytes(s, NULL, t->kv_bytes[c]);
        sheet_seconds(s, NULL, t->prefill_s[c]);
        sheet_seconds(s, NULL, t->question_s[c]);
    }
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
    sheet_int(s, "n_contexts", t.n_contexts);
    sheet_int(s, "n_configs", t.n_configs);
    sheet_int(s, "n_train_questions", train);
    sheet_int(s, "n_test_questions", t.n_questions - train);
    sheet_text(s, "scored_with", or_null(t.embedder_digest));
    sheet_int(s, "n_tiers", t.n_tiers);
    put_table(s, &t);
    table_release(&t);
    return 0;
}

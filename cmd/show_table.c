/* show_table.c - the profile and utility table: one line per config, over all contexts. */
#include "cmd/show.h"
#include "profiler/table.h"

#include <math.h>
#include <string.h>

/* The mean of what is known. */
struct mean {
    double sum;
    int n;
};

static void mean_add(struct mean *m, double v)
{
    if (isnan(v))
        return;
    m->sum += v;
    m->n++;
}

static double mean_of(struct mean m)
{
    return m.n > 0 ? m.sum / m.n : (double)NAN;
}

static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

static void put_config(struct sheet *s, const struct table *t, int v)
{
    struct mean size = { 0 }, kept = { 0 }, train = { 0 }, test = { 0 }, compress = { 0 }, decompress = { 0 };

    for (int c = 0; c < t->n_contexts; c++) {
        size_t cell = (size_t)c * (size_t)t->n_configs + (size_t)v;
        mean_add(&size, t->size_frac[cell]);
        mean_add(&kept, t->keep_frac[cell]);
        mean_add(&compress, t->compress_s[cell]);
        mean_add(&decompress, t->decompress_s[cell]);
        mean_add(&train, t->quality_train ? t->quality_train[cell] : (double)NAN);
        mean_add(&test, t->quality_test ? t->quality_test[cell] : (double)NAN);
    }
    sheet_text(s, NULL, t->config_name[v]);
    sheet_int(s, NULL, size.n);
    sheet_times(s, NULL, 1 / mean_of(size));
    sheet_real(s, NULL, mean_of(kept), 3);
    sheet_real(s, NULL, mean_of(train), 3);
    sheet_real(s, NULL, mean_of(test), 3);
    sheet_seconds(s, NULL, mean_of(compress));
    sheet_seconds(s, NULL, mean_of(decompress));
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

/* copy make OUT - write a table with every dataset and every kind of absence.
 * copy IN OUT   - read a table and write it again; status 3 and a sentence when it is refused. */
#include "profiler/table/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void fill_exact(struct table *t)
{
    for (int i = 0; i < 8; i++) {
        if (i % 4 == 3)
            continue;
        t->log_likelihood[i] = i == 1 ? -0.5F : NAN;
        t->facts_kept[i] = i < 4 ? (float)i / 4 : NAN;
        t->token_f1[i] = (float)i / 16;
        t->predicted_facts[i] = i < 4 ? 0.75F : NAN;
        t->predicted_facts_sd[i] = i < 4 ? 0.25F : NAN;
        t->facts_train[i] = i < 4 ? i / 4.0 : (double)NAN;
        t->facts_test[i] = i < 4 ? (double)NAN : i / 8.0;
        t->token_f1_train[i] = t->token_f1_test[i] = i / 8.0;
    }
}

static void fill(struct table *t)
{
    static const char *const id[] = { "qasper/1", "na\xc3\xafve \xe2\x82\xac" }, *const question[] = { "a", "b", "c" };
    static const char *const config[] = { "none", "keydiff:drop=0.5", "kivi:bits=2", "snapkv:drop=0.9" };
    static const char *const tier[] = { "dram", "ssd", "recompute" };

    for (int c = 0; c < 2; c++) {
        t->context_id[c] = id[c];
        t->context_token_digest[c] = DIGEST;
        t->n_tokens[c] = 1000 + c;
        t->kv_bytes[c] = (int64_t)1 << (40 + c);
        t->prefill_s[c] = 0.5 + c;
        t->prefill_flop[c] = c ? 1e15 : (double)NAN;
        t->profiled_at[c] = 1.75e9 + c;
        t->prefill_n[c] = c ? -1 : 2;
        t->prefill_spread[c] = c ? (double)NAN : 0.125;
        t->question_spread[c] = c ? 0 : (double)NAN;
        t->unrelated[c] = c ? (double)NAN : 0.25;
        t->same_meaning[c] = c ? (double)NAN : 0.75;
    }
    t->context_dataset[0] = "qasper";
    t->context_prefix_digests[0] = DIGEST DIGEST DIGEST;
    for (int i = 0; i < 3; i++) {
        t->curve_context[i] = i == 2;
        t->curve_n_tokens[i] = i == 0 ? 512 : t->n_tokens[i == 2];
        t->curve_s[i] = i == 0 ? 0.25 : t->prefill_s[i == 2];
    }
    for (int v = 0; v < 4; v++)
        t->config_name[v] = config[v];
    for (int q = 0; q < 3; q++) {
        t->question_id[q] = question[q];
        t->question_text[q] = "why\n?";
        t->question_split[q] = q ? "test" : "train";
        t->question_context[q] = q == 2;
        t->asked_at[q] = q ? 1.75e9 + q : (double)NAN;
        t->question_origin[q] = q ? "api:m" : "";
        t->sampled_n_tokens[q] = q - 1;
        t->sampled_text[q] = q == 2 ? "so" : "";
        t->sampled_similarity[q] = q ? 0.75F : NAN;
        t->gold_answers[q] = q ? "" : "[\"because\",\"\"]";
    }
    for (int i = 0; i < 12; i++) { // the last config was not run
        if (i % 4 == 3)
            continue;
        t->answer_n_tokens[i] = i % 4;
        t->answer_text[i] = i % 4 ? "because \xf0\x9f\x98\x80" : "";
        t->similarity[i] = (float)i / 12;
        if (i < 4)
            t->gold_score[i] = (float)i / 4;
    }
    for (int i = 0; i < 8; i++) {
        if (i % 4 == 3)
            continue;
        t->cell_bytes[i] = ((int64_t)1 << 33) + i;
        t->cell_bytes_read[i] = i % 2 ? t->cell_bytes[i] / 2 : -1;
        t->size_frac[i] = t->keep_frac[i] = t->quality_train[i] = 1.0 / (i + 1);
        t->quality_train_n[i] = 1 + i % 2;
        t->quality_train_std[i] = i % 2 ? 0.125 : (double)NAN;
        t->quality_test_n[i] = 0;
        if (i < 4)
            t->gold_mean[i] = i / 4.0;
        t->predicted_quality[i] = 0.5;
        t->predicted_sd[i] = 0.5F;
        t->compress_s[i] = 0.125 * i;
        t->decompress_s[i] = 0;
        for (int b = 0; b < TABLE_BATCHES; b++)
            t->decode_s[b][i] = i ? 0.03125 / (b + i) : (double)NAN;
        for (int d = 0; d < 3; d++) {
            t->utility[3 * i + d] = i - 2.5 * d;
            t->ttft_s[3 * i + d] = i + 0.25 * d;
        }
    }
    for (int i = 0; i < 8; i++)
        t->cell_asked[i] = i % 4 == 3 ? 0 : 1 + i % 2;
    for (int v = 0; v < 3; v++)
        t->belief_mean[v] = t->belief_between[v] = t->belief_within[v] = 0.25 * v;
    for (int d = 0; d < 3; d++)
        t->tier_name[d] = tier[d];
}

static int make(struct table *t, struct err *err)
{
    if (table_alloc(t, 2, 4, 3, err) || table_alloc_scores(t, 3, err) || table_alloc_belief(t, err) ||
        table_alloc_curve(t, 3, err) || table_alloc_read(t, err) || table_set_text(&t->model, "m", err) ||
        table_set_text(&t->model_digest, DIGEST, err) || table_set_text(&t->lineage, "{\"tool\":\"copy\"}", err))
        return err->code;
    t->max_new_tokens = 32;
    t->temperature = 0.7;
    fill(t);
    fill_exact(t);
    return 0;
}

int main(int argc, char **argv)
{
    struct table t = { 0 };
    struct err err;

    if (argc != 3)
        return 2;
    int code = strcmp(argv[1], "make") == 0 ? make(&t, &err) : table_read(&t, argv[1], TABLE_ALL, &err);
    if (!code)
        code = table_write(&t, argv[2], &err);
    if (code)
        fprintf(stderr, "%s\n", err.msg);
    table_release(&t);
    return err_exit_status(code);
}

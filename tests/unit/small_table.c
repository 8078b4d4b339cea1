/* Fills a small table. */
#include "tests/unit/small_table.h"

#include <criterion/criterion.h>

static const char *const context[] = { "a/1", "b/2", "c/3" };
static const char *const config[] = { "none", "knorm:drop=0.5", "kivi:bits=2" };
static const char *const question[] = { "q0", "q1", "q2", "q3" };

void small_table(struct table *t, int first, int n, int first_config, int n_configs)
{
    struct err err;

    cr_assert_eq(table_alloc(t, n, n_configs, n, &err), 0);
    cr_assert(!table_set_text(&t->model, "m", &err) && !table_set_text(&t->model_digest, SMALL_DIGEST, &err));
    cr_assert(!table_set_text(&t->lineage, "[\"\xc3\xa9\"]", &err));
    t->max_new_tokens = 32;
    for (int v = 0; v < n_configs; v++)
        t->config_name[v] = config[v ? first_config + v - 1 : 0];
    for (int i = 0; i < n; i++) {
        t->context_id[i] = context[first + i];
        t->context_token_digest[i] = SMALL_DIGEST;
        t->n_tokens[i] = 100 + first + i;
        t->kv_bytes[i] = 1 << 20;
        t->prefill_s[i] = 0.25;
        t->question_id[i] = question[first + i];
        t->question_text[i] = "why?";
        t->question_split[i] = "train";
        t->question_context[i] = i;
        for (int v = 0; v < n_configs; v++) {
            int at = i * n_configs + v;
            t->cell_bytes[at] = 1000 * (first + i) + (v ? first_config + v - 1 : 0);
            t->size_frac[at] = t->keep_frac[at] = 0.5;
            t->compress_s[at] = t->decompress_s[at] = 0;
            t->answer_n_tokens[at] = v + 1;
            t->answer_text[at] = v ? "na\xc3\xafve\nanswer" : "yes";
        }
    }
}

void small_table_curve(struct table *t, double seconds)
{
    struct err err;

    cr_assert_eq(table_alloc_curve(t, 2 * t->n_contexts, &err), 0);
    for (int i = 0; i < t->n_points; i++) {
        t->curve_context[i] = i / 2;
        t->curve_n_tokens[i] = i % 2 ? t->n_tokens[i / 2] : 50;
        t->curve_s[i] = seconds * (i + 1);
    }
}

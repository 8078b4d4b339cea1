/* show_rows.c - contexts, questions, tiers and times: totals, then a row for each. */
#include "show/show.h"
#include "formats/context.h"
#include "formats/tiers.h"
#include "profiler/score/times.h"

#include <string.h>

int show_contexts(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "id", "dataset", "chars", "n_tokens", "n_questions" };
    struct contexts c;
    int64_t chars = 0, tokens = 0, questions = 0;

    (void)depth; /* the reader checks everything */
    if (contexts_read(&c, path, err))
        return err->code;
    for (int i = 0; i < c.n; i++) {
        chars += c.at[i].chars;
        tokens = tokens < 0 || c.at[i].n_tokens < 0 ? -1 : tokens + c.at[i].n_tokens;
        questions += c.at[i].inputs.n;
    }
    sheet_int(s, "n_contexts", c.n);
    sheet_int(s, "chars", chars);
    sheet_int(s, "n_tokens", tokens);
    sheet_int(s, "n_questions", questions);
    sheet_table(s, "contexts", column, 5);
    for (int i = 0; i < c.n; i++) {
        sheet_text(s, NULL, c.at[i].id);
        sheet_text(s, NULL, c.at[i].dataset);
        sheet_int(s, NULL, c.at[i].chars);
        sheet_int(s, NULL, c.at[i].n_tokens);
        sheet_int(s, NULL, c.at[i].inputs.n);
    }
    sheet_table_end(s);
    contexts_release(&c);
    return 0;
}

int show_questions(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "id", "context", "split", "origin", "text" };
    struct questions q;
    struct map contexts = { 0 };
    int of_split[2] = { 0 }, code = 0;

    (void)depth;
    if (questions_read(&q, path, err))
        return err->code;
    for (int i = 0; i < q.n && !code; i++) {
        of_split[q.at[i].split]++;
        if (map_add(&contexts, q.at[i].context, strlen(q.at[i].context), NULL) < 0)
            code = err_nomem(err);
    }
    sheet_int(s, "n_questions", q.n);
    sheet_int(s, "n_contexts", contexts.n);
    sheet_int(s, "n_train", of_split[SPLIT_TRAIN]);
    sheet_int(s, "n_test", of_split[SPLIT_TEST]);
    sheet_table(s, "questions", column, 5);
    for (int i = 0; i < q.n; i++) {
        sheet_text(s, NULL, q.at[i].id);
        sheet_text(s, NULL, q.at[i].context);
        sheet_text(s, NULL, split_name(q.at[i].split));
        sheet_text(s, NULL, q.at[i].origin);
        sheet_text(s, NULL, q.at[i].text);
    }
    sheet_table_end(s);
    map_release(&contexts);
    questions_release(&q);
    return code;
}

int show_tiers(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = {
        "name", "kind", "capacity_bytes", "read_bytes_per_s", "write_bytes_per_s", "latency_s", "uri"
    };
    struct tiers t;

    (void)depth;
    if (tiers_read(&t, path, err))
        return err->code;
    sheet_int(s, "n_tiers", t.n);
    sheet_table(s, "tiers", column, 7);
    for (int i = 0; i < t.n; i++) {
        sheet_text(s, NULL, t.at[i].name);
        sheet_text(s, NULL, tier_kind_name(t.at[i].kind));
        sheet_bytes(s, NULL, t.at[i].capacity == INT64_MAX ? -1 : t.at[i].capacity);
        sheet_rate(s, NULL, t.at[i].read_bytes_per_s);
        sheet_rate(s, NULL, t.at[i].write_bytes_per_s > 0 ? t.at[i].write_bytes_per_s : -1);
        sheet_seconds(s, NULL, t.at[i].latency_s);
        sheet_text(s, NULL, t.at[i].uri);
    }
    sheet_table_end(s);
    tiers_release(&t);
    return 0;
}

static void put_points(struct sheet *s, const char *key, const struct times_curve *c)
{
    static const char *const column[] = { "n_tokens", "time_s" };

    sheet_table(s, key, column, 2);
    for (int i = 0; i < c->n; i++) {
        sheet_int(s, NULL, c->at[i].n_tokens);
        sheet_seconds(s, NULL, c->at[i].seconds);
    }
    sheet_table_end(s);
}

int show_times(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    static const char *const column[] = { "config", "bytes_per_s" };
    struct times t;

    (void)depth;
    if (times_read(&t, path, err))
        return err->code;
    sheet_text(s, "name", *t.name ? t.name : NULL);
    put_points(s, "prefill", &t.prefill);
    put_points(s, "question", &t.question);
    sheet_table(s, "decompress", column, 2);
    for (int i = 0; i < t.decompress.n; i++) {
        sheet_text(s, NULL, t.decompress.at[i].config);
        sheet_rate(s, NULL, t.decompress.at[i].bytes_per_s);
    }
    sheet_table_end(s);
    times_release(&t);
    return 0;
}

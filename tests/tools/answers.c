/* answers TABLE.h5 - the answers of a profile or table, without its times: a line of JSON for each that was run, sorted
 * by context, question and config, so that two runs can be compared with cmp.
 *
 * A line has the number of tokens too, because different ids can read alike; the bytes of the variant; and after
 * evp-score the similarity to the answer with the uncompressed cache.
 */
#include "base/json.h"
#include "profiler/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *line_of(const struct table *t, int question, int config)
{
    struct buf out = { 0 };
    struct json_out w = { .buf = &out };
    int context = (int)t->question_context[question];
    size_t answer = table_answer(t, question, config);

    json_begin(&w, NULL, '{');
    json_put_text(&w, "context", t->context_id[context]);
    json_put_text(&w, "question", t->question_id[question]);
    json_put_text(&w, "config", t->config_name[config]);
    json_put_int(&w, "bytes", t->cell_bytes[table_cell(t, context, config)]);
    json_put_int(&w, "n_tokens", t->answer_n_tokens[answer]);
    json_put_text(&w, "answer", t->answer_text[answer]);
    if (t->similarity)
        json_put_real(&w, "similarity", (double)t->similarity[answer]);
    json_end(&w, '}');
    return buf_take(&out);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    struct table t;
    struct err err;
    int n = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: answers TABLE.h5\n");
        return 2;
    }
    if (table_read(&t, argv[1], TABLE_ALL, &err)) {
        fprintf(stderr, "answers: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    char **line = calloc(table_n_answers(&t) + 1, sizeof(*line));
    for (int q = 0; line && q < t.n_questions; q++)
        for (int v = 0; v < t.n_configs; v++)
            if (t.answer_n_tokens[table_answer(&t, q, v)] >= 0)
                line[n++] = line_of(&t, q, v);
    for (int i = 0; i < n; i++)
        if (!line[i])
            return 1;
    if (n)
        qsort(line, (size_t)n, sizeof(*line), compare);
    for (int i = 0; i < n; i++) {
        puts(line[i]);
        free(line[i]);
    }
    free(line);
    table_release(&t);
    return 0;
}

/* make-profile OUT.h5 MODEL <PLAN - a profile for tests of what reads one, without a model.
 *
 * PLAN has lines of fields separated by tabs: first the configs, then contexts with their questions below them.
 *     config    NAME    SIZE_FRAC    [DECODE_S...]    seconds per generated token at batch 1, 8 and 32
 *     context   ID      [DATASET]
 *     question  SPLIT   ANSWER...        one for each config; "-": not run
 *     gold      JSON                     a list of right answers to the question before it
 *     asked     SECONDS                  when it was asked last
 *     sampled   ANSWER                   the reference's second answer to it, at temperature 0.7
 * Every context has 100 tokens, a cache of 1,000 bytes, a prefill of 1 s and questions of 0.1 s.
 */
#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "profiler/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 16, NAMES = 64 };

struct line {
    char *field[FIELDS];
    int n;
};

static struct line split(char *text)
{
    struct line line = { 0 };

    while (line.n < FIELDS) {
        line.field[line.n++] = text;
        text = strchr(text, '\t');
        if (!text)
            break;
        *text++ = '\0';
    }
    return line;
}

/* The lines of the plan, cut in place; returns how many, and how many of each kind. */
static int read_lines(struct line *line, int max, char *text, int count[3])
{
    static const char *const kind[] = { "config", "context", "question" };
    int n = 0;

    for (char *end; n < max && (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        line[n] = split(text);
        for (int k = 0; k < 3; k++)
            count[k] += strcmp(line[n].field[0], kind[k]) == 0;
        n++;
    }
    return n;
}

static void fill_context(struct table *t, int c, char *id, double (*config)[1 + TABLE_BATCHES])
{
    static char digest[256][DIGEST_HEX];

    snprintf(digest[c], DIGEST_HEX, "%064d", c);
    t->context_id[c] = id;
    t->context_token_digest[c] = digest[c];
    t->n_tokens[c] = 100;
    t->kv_bytes[c] = 1000;
    t->prefill_s[c] = 1;
    t->question_s[c] = 0.1;
    for (int v = 0; v < t->n_configs; v++) {
        size_t cell = table_cell(t, c, v);
        t->cell_bytes[cell] = (int64_t)(1000 * config[v][0]);
        t->size_frac[cell] = config[v][0];
        for (int b = 0; b < TABLE_BATCHES; b++)
            t->decode_s[b][cell] = config[v][1 + b] > 0 ? config[v][1 + b] : (double)NAN;
        t->keep_frac[cell] = 1;
        t->compress_s[cell] = t->decompress_s[cell] = 0;
    }
}

static void fill_question(struct table *t, int q, int c, const struct line *line)
{
    static char names[NAMES][32];

    snprintf(names[q], sizeof(names[0]), "%.16s.%d", t->context_id[c], q);
    t->question_id[q] = names[q];
    t->question_context[q] = c;
    t->question_split[q] = line->field[1];
    for (int v = 0; v < t->n_configs; v++) {
        char *answer = line->field[2 + v];
        if (strcmp(answer, "-") == 0)
            continue;
        t->answer_text[table_answer(t, q, v)] = answer;
        t->answer_n_tokens[table_answer(t, q, v)] = (int32_t)strlen(answer);
    }
}

static void fill(struct table *t, const struct line *line, int n)
{
    double config[FIELDS][1 + TABLE_BATCHES] = { 0 };
    int v = 0, c = -1, q = 0;

    for (int i = 0; i < n; i++) {
        if (strcmp(line[i].field[0], "config") == 0) {
            t->config_name[v] = line[i].field[1];
            for (int k = 0; k < line[i].n - 2 && k <= TABLE_BATCHES; k++)
                parse_real(line[i].field[2 + k], &config[v][k]);
            v++;
        } else if (strcmp(line[i].field[0], "context") == 0) {
            fill_context(t, ++c, line[i].field[1], config);
            t->context_dataset[c] = line[i].n > 2 ? line[i].field[2] : "";
        } else if (strcmp(line[i].field[0], "gold") == 0)
            t->gold_answers[q - 1] = line[i].field[1];
        else if (strcmp(line[i].field[0], "asked") == 0)
            parse_real(line[i].field[1], &t->asked_at[q - 1]);
        else if (strcmp(line[i].field[0], "sampled") == 0) {
            t->temperature = 0.7;
            t->sampled_text[q - 1] = line[i].field[1];
            t->sampled_n_tokens[q - 1] = (int32_t)strlen(line[i].field[1]);
        } else
            fill_question(t, q++, c, &line[i]);
    }
}

int main(int argc, char **argv)
{
    struct line line[NAMES];
    struct buf text = { 0 };
    struct table t;
    struct err err = { 0 };
    char digest[DIGEST_HEX];
    int count[3] = { 0 };

    if (argc != 3 || file_read(&text, "-", 1 << 20, &err))
        return 2;
    int n = read_lines(line, NAMES, text.at, count);
    snprintf(digest, sizeof(digest), "%064d", (int)strlen(argv[2])); // another length, another model
    if (table_alloc(&t, count[1], count[0], count[2], &err) || table_set_text(&t.model, argv[2], &err) ||
        table_set_text(&t.model_digest, digest, &err) ||
        table_set_text(&t.lineage, "{\"tool\":\"make-profile\"}", &err))
        return 1;
    fill(&t, line, n);
    int code = table_check(&t, &err) || table_write(&t, argv[1], &err);
    if (code)
        fprintf(stderr, "make-profile: %s\n", err.msg);
    table_release(&t);
    buf_release(&text);
    return code ? 1 : 0;
}

/* rouge.c - ROUGE-L of whole summaries, as the Python package `rouge` computes it.
 *
 * A text is cut into sentences at full stops only. For every sentence of the right answer and every sentence of the
 * answer a longest common subsequence is found; the distinct words of all of them are counted. Their share of the
 * distinct words of the right answer is the recall, of the answer the precision. The choice among subsequences of equal
 * length matters; ties go as in that package. A sentence of only blanks is one empty word there, and so here.
 */
#include "base/array.h"
#include "profiler/score/metric_internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A text's sentences. */
struct sentences {
    struct word_ids words;
    struct {
        int *at; // the end of each
        int n, cap;
    } ends;
};

static int add_sentence(struct sentences *s, struct map *words, const char *text, size_t n, struct err *err)
{
    int before = s->words.n;

    if (n == 0)
        return 0;
    if (word_ids_add(&s->words, words, text, n, err))
        return err->code;
    if (s->words.n == before) {
        int empty = map_add(words, "", 0, NULL);
        if (empty == MAP_NOMEM || ARRAY_PUSH(&s->words, empty))
            return err_nomem(err);
    }
    return ARRAY_PUSH(&s->ends, s->words.n) ? err_nomem(err) : 0;
}

static int split(struct sentences *s, struct map *words, const char *text, struct err *err)
{
    for (;;) {
        size_t n = strcspn(text, ".");
        if (add_sentence(s, words, text, n, err))
            return err->code;
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

static void sentences_release(struct sentences *s)
{
    free(s->words.at);
    free(s->ends.at);
}

static int distinct(const struct word_ids *words, bool *seen, int n_words)
{
    int n = 0;

    memset(seen, false, (size_t)n_words * sizeof(*seen));
    for (int i = 0; i < words->n; i++) {
        n += !seen[words->at[i]];
        seen[words->at[i]] = true;
    }
    return n;
}

struct sentence {
    const int *at;
    int n;
};

/* Marks the words of a longest common subsequence of x and y. table: (x->n + 1, y->n + 1). */
static void mark_common(const struct sentence *x, const struct sentence *y, int *table, bool *seen)
{
    size_t width = (size_t)y->n + 1;

    for (size_t i = 0; i <= (size_t)x->n; i++)
        for (size_t j = 0; j < width; j++) {
            int *at = &table[i * width + j];
            if (i == 0 || j == 0)
                *at = 0;
            else if (x->at[i - 1] == y->at[j - 1])
                *at = at[-(ptrdiff_t)width - 1] + 1;
            else
                *at = at[-(ptrdiff_t)width] > at[-1] ? at[-(ptrdiff_t)width] : at[-1];
        }
    for (size_t i = (size_t)x->n, j = (size_t)y->n; i > 0 && j > 0;) {
        const int *at = &table[i * width + j];
        if (x->at[i - 1] == y->at[j - 1]) {
            seen[x->at[i - 1]] = true;
            i--;
            j--;
        } else if (at[-(ptrdiff_t)width] > at[-1])
            i--;
        else
            j--;
    }
}

static struct sentence sentence_of(const struct sentences *s, int i)
{
    int from = i ? s->ends.at[i - 1] : 0;

    return (struct sentence){ s->words.at + from, s->ends.at[i] - from };
}

static int longest(const struct sentences *s)
{
    int max = 0;

    for (int i = 0; i < s->ends.n; i++)
        max = sentence_of(s, i).n > max ? sentence_of(s, i).n : max;
    return max;
}

/* The distinct words of the common subsequences of all sentences; -1 without memory. */
static int common(const struct sentences *gold, const struct sentences *answer, bool *seen, int n_words)
{
    int *table = malloc(((size_t)longest(gold) + 1) * ((size_t)longest(answer) + 1) * sizeof(*table)), n = 0;

    if (!table)
        return -1;
    memset(seen, false, (size_t)n_words * sizeof(*seen));
    for (int i = 0; i < gold->ends.n; i++)
        for (int j = 0; j < answer->ends.n; j++) {
            struct sentence x = sentence_of(gold, i), y = sentence_of(answer, j);
            mark_common(&x, &y, table, seen);
        }
    for (int i = 0; i < n_words; i++)
        n += seen[i];
    free(table);
    return n;
}

static int score(const struct sentences *answer, const struct sentences *gold, int n_words, double *f, struct err *err)
{
    if (answer->ends.n == 0 || gold->ends.n == 0) // `rouge` raises an error, which LongBench counts as 0
        return 0;
    if (metric_check_steps((size_t)answer->words.n, (size_t)gold->words.n, err))
        return err->code;
    bool *seen = calloc((size_t)n_words + 1, sizeof(*seen));
    if (!seen)
        return err_nomem(err);
    double n_answer = distinct(&answer->words, seen, n_words), n_gold = distinct(&gold->words, seen, n_words);
    int n = common(gold, answer, seen, n_words);
    free(seen);
    if (n < 0)
        return err_nomem(err);
    double precision = n / n_answer, recall = n / n_gold;
    *f = 2 * precision * recall / (precision + recall + 1e-8);
    return 0;
}

int rouge_l(const char *answer, const char *gold, double *f, struct err *err)
{
    struct map words = { 0 };
    struct sentences a = { 0 }, g = { 0 };
    int code = split(&a, &words, answer, err);

    *f = 0;
    if (!code)
        code = split(&g, &words, gold, err);
    if (!code)
        code = score(&a, &g, words.n, f, err);
    sentences_release(&a);
    sentences_release(&g);
    map_release(&words);
    return code;
}

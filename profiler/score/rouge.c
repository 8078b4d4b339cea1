/* rouge.c - ROUGE-L of whole summaries, as the Python package `rouge` computes it, and ROUGE-Lsum.
 *
 * `rouge`: a text is cut into sentences at full stops only. For every sentence of the right answer and of the answer a
 * longest common subsequence is found; the distinct words of all of them are counted. Their share of the distinct words
 * of the right answer is the recall, of the answer the precision. The choice among subsequences of equal length
 * matters; ties go as in that package. A sentence of only blanks is one empty word there, and so here.
 *
 * ROUGE-Lsum of `rouge_score`: lines are the sentences, words are ASCII letters and digits in lower case, and a word
 * counts as often as both texts have it.
 */
#include "base/array.h"
#include "base/buf.h"
#include "profiler/score/metric_internal.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

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

/* How often the text has each word; `rouge` counts it once. Returns the sum. */
static int count_words(const struct word_ids *words, int at_most, int *count, int n_words)
{
    int n = 0;

    memset(count, 0, (size_t)n_words * sizeof(*count));
    for (int i = 0; i < words->n; i++)
        n += count[words->at[i]]++ < at_most;
    return n;
}

struct sentence {
    const int *at;
    int n;
};

/* Where two subsequences are equally long, the walk back leaves a word of y, or of x. */
enum ties { TIES_LEAVE_Y, TIES_LEAVE_X };

/* Marks the positions in x of a longest common subsequence of x and y. table: (x->n + 1, y->n + 1). */
static void mark_common(const struct sentence *x, const struct sentence *y, enum ties ties, int *table, bool *mark)
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
            mark[i - 1] = true;
            i--;
            j--;
        } else if (at[-(ptrdiff_t)width] + (ties == TIES_LEAVE_X) > at[-1])
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

/* Marks the words of gold that are in a common subsequence with a sentence of the answer. mark: (gold->words.n). */
static int mark_all(const struct sentences *gold, const struct sentences *answer, enum ties ties, bool *mark,
                    struct err *err)
{
    int *table = malloc(((size_t)longest(gold) + 1) * ((size_t)longest(answer) + 1) * sizeof(*table));

    if (!table)
        return err_nomem(err);
    for (int i = 0; i < gold->ends.n; i++)
        for (int j = 0; j < answer->ends.n; j++) {
            struct sentence x = sentence_of(gold, i), y = sentence_of(answer, j);
            mark_common(&x, &y, ties, table, mark + (x.at - gold->words.at));
        }
    free(table);
    return 0;
}

/* The number of marked words; each counts at most as often as `left` says, which becomes less. */
static int count_marked(const struct word_ids *gold, const bool *mark, int *left)
{
    int n = 0;

    for (int i = 0; i < gold->n; i++)
        n += mark[i] && left[gold->at[i]]-- > 0;
    return n;
}

/* The shares of common words of the right answer (recall) and of the answer (precision). */
struct shares {
    enum ties ties; // given
    double precision, recall;
};

static int compare(const struct sentences *answer, const struct sentences *gold, int n_words, struct shares *s,
                   struct err *err)
{
    int at_most = s->ties == TIES_LEAVE_Y ? 1 : INT_MAX;

    if (answer->words.n == 0 || gold->words.n == 0) // `rouge` raises an error, which LongBench counts as 0
        return 0;
    if (metric_check_steps((size_t)answer->words.n, (size_t)gold->words.n, err))
        return err->code;
    bool *mark = calloc((size_t)gold->words.n, sizeof(*mark));
    int *count = calloc((size_t)n_words, sizeof(*count));
    int code = mark && count ? mark_all(gold, answer, s->ties, mark, err) : err_nomem(err);
    if (!code) {
        double n_gold = count_words(&gold->words, at_most, count, n_words);
        double n_answer = count_words(&answer->words, at_most, count, n_words);
        for (int i = 0; i < n_words && at_most == 1; i++)
            count[i] = count[i] > 0;
        double n = count_marked(&gold->words, mark, count);
        s->precision = n / n_answer;
        s->recall = n / n_gold;
    }
    free(mark);
    free(count);
    return code;
}

static int shares_of(const char *answer, const char *gold, struct shares *s, struct err *err)
{
    struct map words = { 0 };
    struct sentences a = { 0 }, g = { 0 };
    int code = split(&a, &words, answer, err);

    if (!code)
        code = split(&g, &words, gold, err);
    if (!code)
        code = compare(&a, &g, words.n, s, err);
    sentences_release(&a);
    sentences_release(&g);
    map_release(&words);
    return code;
}

int rouge_l(const char *answer, const char *gold, double *f, struct err *err)
{
    struct shares s = { .ties = TIES_LEAVE_Y };
    int code = shares_of(answer, gold, &s, err);

    *f = code ? 0 : 2 * s.precision * s.recall / (s.precision + s.recall + 1e-8);
    return code;
}

/* Words with a blank between them, lines with a full stop, for split(). */
static void plain_lines(struct buf *out, const char *text)
{
    size_t n = strlen(text);

    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += metric_next(text + at, n - at, &c);
        c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
        bool word = c < 128 && isalnum((int)c);
        char last = out->n ? out->at[out->n - 1] : '.';
        if (c == '\n' && last == ' ')
            out->at[out->n - 1] = '.';
        else if (word || (last != ' ' && last != '.'))
            buf_addc(out, word ? (char)c : c == '\n' ? '.' : ' ');
    }
}

int rouge_lsum(const char *answer, const char *gold, double *f, struct err *err)
{
    struct buf a = { 0 }, g = { 0 };
    struct shares s = { .ties = TIES_LEAVE_X };

    plain_lines(&a, answer);
    plain_lines(&g, gold);
    int code = buf_failed(&a) || buf_failed(&g) ? err_nomem(err) : shares_of(buf_str(&a), buf_str(&g), &s, err);
    *f = s.precision > 0 ? 2 * s.precision * s.recall / (s.precision + s.recall) : 0;
    buf_release(&a);
    buf_release(&g);
    return code;
}

/* metric.c - which dataset has which metric, and LongBench's metrics except ROUGE-L (rouge.c). */
#include "profiler/score/metric.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "profiler/score/metric_internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static const struct scored {
    enum metric metric;
    const char *datasets; // with blanks between them, and around
} scored[] = {
    { METRIC_F1, " narrativeqa qasper multifieldqa_en hotpotqa 2wikimqa musique triviaqa longbook_qa_eng " },
    { METRIC_ROUGE_L, " gov_report qmsum multi_news samsum " },
    { METRIC_CLASS, " trec " },
    { METRIC_RETRIEVAL, " passage_retrieval_en " },
    { METRIC_COUNT, " passage_count " },
    { METRIC_EDIT, " lcc repobench-p " },
    { METRIC_NAMED, " niah_single_1 niah_single_2 niah_single_3 niah_multikey_1 niah_multikey_2 niah_multikey_3 "
                    "niah_multivalue niah_multiquery vt cwe fwe " },
    { METRIC_NAMED_ROUNDED, " scbench_vt " },
    { METRIC_ANY, " qa_1 qa_2 scbench_qa_eng scbench_many_shot longdialogue_qa_eng " },
    { METRIC_PART, " scbench_kv scbench_prefix_suffix scbench_repoqa_and_kv " },
    { METRIC_CHOICE, " scbench_choice_eng " },
    { METRIC_LETTER, " longbench-v2 " },
    { METRIC_NUMBER, " passkey number_string " },
    { METRIC_VALUE, " scbench_mf math_find " },
    { METRIC_F1_CHARS, " scbench_qa_chn longbook_qa_chn " },
    { METRIC_ROUGE_LSUM, " scbench_summary scbench_summary_with_needles longbook_sum_eng " },
};
static const char first_lines[] = " triviaqa samsum trec "; // where only the answer's first line is scored

/* The field all_classes of every row of trec, letter by letter. */
static const char *const classes[] = {
    "Food",
    "Date",
    "Order, rank",
    "Speed",
    "Disease and medicine",
    "Word with a special property",
    "Abbreviation",
    "Language",
    "Letter like a-z",
    "Other entity",
    "Animal",
    "Expression abbreviated",
    "Price",
    "Techniques and method",
    "Musical instrument",
    "Mountain",
    "Currency name",
    "Event",
    "Product",
    "State",
    "Individual",
    "Organ of body",
    "Reason",
    "Manner of an action",
    "City",
    "Religion",
    "Invention, book and other creative piece",
    "Distance, linear measure",
    "Temperature",
    "Postcode or other code",
    "Size, area and volume",
    "Sport",
    "Country",
    "Other location",
    "Lasting time of somethin",
    "Equivalent term",
    "Description of something",
    "Weight",
    "Vehicle",
    "Color",
    "Other number",
    "Definition of something",
    "Element and substance",
    "Description of a person",
    "Symbols and sign",
    "Number of something",
    "Plant",
    "Percent, fraction",
    "Group or organization of person",
    "Title of a person",
};
enum { N_CLASSES = sizeof(classes) / sizeof(*classes) };

/* Is a dataset among others, with or without _e? */
static bool is_among(const char *datasets, const char *dataset)
{
    size_t n = strlen(dataset);
    char *base = n > 2 && strcmp(dataset + n - 2, "_e") == 0 ? strndup(dataset, n - 2) : NULL;
    bool among = text_among(datasets, base ? base : dataset);

    free(base);
    return among;
}

enum metric metric_of(const char *dataset)
{
    for (size_t i = 0; i < sizeof(scored) / sizeof(*scored); i++)
        if (is_among(scored[i].datasets, dataset))
            return scored[i].metric;
    return METRIC_NONE;
}

const char *metric_name(enum metric metric)
{
    switch (metric) {
    case METRIC_NONE: return NULL;
    case METRIC_F1: return "token F1";
    case METRIC_F1_CHARS: return "character F1";
    case METRIC_ROUGE_L: return "ROUGE-L";
    case METRIC_ROUGE_LSUM: return "ROUGE-Lsum";
    case METRIC_RETRIEVAL:
    case METRIC_COUNT: return "right numbers";
    case METRIC_EDIT: return "edit similarity";
    case METRIC_NAMED:
    case METRIC_NAMED_ROUNDED: return "share of names";
    default: return "accuracy";
    }
}

int metric_check_steps(size_t a, size_t b, struct err *err)
{
    const size_t max = (size_t)1 << 29;

    return b && a > max / b ? err_set(err, ERR_FORMAT, "the answer or the right answer is too long to compare") : 0;
}

/* ---- words ---------------------------------------------------------------- */

/* Python counts ASCII's four separators as white space, Unicode does not. */
static bool is_space(uint32_t c)
{
    return (c >= 0x1c && c <= 0x1f) || utf8_is_space(c);
}

size_t metric_next(const char *s, size_t left, uint32_t *point)
{
    int n = utf8_decode(s, left, point);

    if (n <= 0)
        *point = (unsigned char)*s;
    return n > 0 ? (size_t)n : 1;
}

int word_ids_add(struct word_ids *ids, struct map *words, const char *text, size_t n, struct err *err)
{
    size_t begin = 0;
    uint32_t c;

    for (size_t at = 0, length; at <= n; at += length) {
        length = at < n ? metric_next(text + at, n - at, &c) : 1;
        if (at < n && !is_space(c))
            continue;
        int id = at > begin ? map_add(words, text + begin, at - begin, NULL) : MAP_ABSENT;
        begin = at + length;
        if (id == MAP_NOMEM || (id >= 0 && ARRAY_PUSH(ids, id)))
            return err_nomem(err);
    }
    return 0;
}

/* ---- token F1 --------------------------------------------------------------- */

/* A letter or a digit, as in \w; the underscore is already removed as punctuation. */
static bool is_word(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) ||
           (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

static bool is_ascii_punctuation(uint32_t c)
{
    return c < 128 && c != 0 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", (int)c);
}

struct points {
    uint32_t *at;
    int n, cap;
};

/* Lower case, without ASCII punctuation. */
static int lower_points(struct points *out, const char *text, struct err *err)
{
    size_t n = strlen(text);
    uint32_t c;

    for (size_t at = 0; at < n;) {
        at += metric_next(text + at, n - at, &c);
        c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
        if (!is_ascii_punctuation(c) && ARRAY_PUSH(out, c))
            return err_nomem(err);
    }
    return 0;
}

/* The length of an article that stands alone at `at`, or 0. */
static int article_at(const struct points *p, int at)
{
    static const char *const articles[] = { "a", "an", "the" };

    if (at > 0 && is_word(p->at[at - 1]))
        return 0;
    for (int i = 0; i < 3; i++) {
        int n = 0;
        while (articles[i][n] && at + n < p->n && p->at[at + n] == (uint32_t)articles[i][n])
            n++;
        if (!articles[i][n] && (at + n == p->n || !is_word(p->at[at + n])))
            return n;
    }
    return 0;
}

/* normalize_answer() and split(). */
static int normal_words(struct word_ids *ids, struct map *words, const char *text, struct err *err)
{
    struct points p = { 0 };
    struct buf plain = { 0 };
    int code = lower_points(&p, text, err);

    for (int i = 0; i < p.n && !code; i++) {
        int skip = article_at(&p, i);
        char bytes[4];
        buf_add(&plain, skip ? " " : bytes, skip ? 1 : (size_t)utf8_encode(p.at[i], bytes));
        i += skip ? skip - 1 : 0;
    }
    if (!code)
        code = buf_failed(&plain) ? err_nomem(err) : word_ids_add(ids, words, buf_str(&plain), plain.n, err);
    buf_release(&plain);
    free(p.at);
    return code;
}

/* The number of common words of two texts; a repeated word counts as often as in the text that has it less often. */
static int count_common(const struct word_ids *a, const struct word_ids *b, int *left)
{
    int n = 0;

    for (int i = 0; i < a->n; i++)
        left[a->at[i]]++;
    for (int i = 0; i < b->n; i++)
        if (left[b->at[i]] > 0) {
            left[b->at[i]]--;
            n++;
        }
    return n;
}

/* normalize_zh_answer(): every character is a word. */
static int normal_chars(struct word_ids *ids, struct map *words, const char *text, struct err *err)
{
    static const char chinese[] =
        "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾"
        "〿–—‘’‛“”„‟…‧﹏";
    struct points p = { 0 };
    int code = lower_points(&p, text, err);

    for (int i = 0; i < p.n && !code; i++) {
        char bytes[5] = "";
        size_t n = (size_t)utf8_encode(p.at[i], bytes);
        if (!strstr(chinese, bytes))
            code = word_ids_add(ids, words, bytes, n, err);
    }
    free(p.at);
    return code;
}

typedef int normal(struct word_ids *ids, struct map *words, const char *text, struct err *err);

/* NAN: neither text has a word. */
static int token_f1(const char *answer, const char *gold, normal *add, double *score, struct err *err)
{
    struct map words = { 0 };
    struct word_ids a = { 0 }, g = { 0 };
    int code = add(&a, &words, answer, err);

    if (!code)
        code = add(&g, &words, gold, err);
    int *left = code ? NULL : calloc((size_t)words.n + 1, sizeof(*left));
    if (!code)
        code = left ? 0 : err_nomem(err);
    int n = code ? 0 : count_common(&a, &g, left);
    double precision = n ? (double)n / a.n : 0, recall = n ? (double)n / g.n : 0;
    *score = n ? 2 * precision * recall / (precision + recall) : a.n + g.n ? 0 : (double)NAN;
    free(left);
    free(a.at);
    free(g.at);
    map_release(&words);
    return code;
}

int metric_token_f1(const char *answer, const char *reference, double *f1, struct err *err)
{
    int code = token_f1(answer, reference, normal_words, f1, err);

    *f1 = isnan(*f1) ? 1 : *f1;
    return code;
}

/* ---- classes and numbers ---------------------------------------------------- */

/* classification_score(). The original also removes classes whose name is within the right one's; trec has none. */
static double class_score(const char *answer, const char *gold)
{
    bool right = false;
    int n = 0;

    for (int i = 0; i < N_CLASSES; i++)
        if (strstr(answer, classes[i])) {
            right |= strcmp(classes[i], gold) == 0;
            n++;
        }
    return right ? 1.0 / n : 0;
}

/* Moves *s to the next number. Returns its length; 0: none. */
static size_t next_number(const char **s)
{
    *s += strcspn(*s, "0123456789");
    return strspn(*s, "0123456789");
}

/* The share of the answer's numbers that equal `right` (n digits). */
static double number_score(const char *answer, const char *right, size_t n)
{
    int numbers = 0, good = 0;

    for (size_t length; (length = next_number(&answer)) > 0; answer += length) {
        numbers++;
        good += length == n && memcmp(answer, right, n) == 0;
    }
    return numbers ? (double)good / numbers : 0;
}

/* The right one is the number after "Paragraph ". */
static double retrieval_score(const char *answer, const char *gold)
{
    static const char word[] = "Paragraph ";

    while ((gold = strstr(gold, word))) {
        gold += sizeof(word) - 1;
        size_t n = strspn(gold, "0123456789");
        if (n)
            return number_score(answer, gold, n);
    }
    return 0;
}

/* ---- edit similarity --------------------------------------------------------- */

/* The first line without a comment or Markdown sign; empty if there is none. */
static void code_line(struct buf *out, const char *answer)
{
    answer += strspn(answer, "\n");
    for (;;) {
        size_t n = strcspn(answer, "\n");
        bool plain = !memchr(answer, '`', n) && !memchr(answer, '#', n) && !memmem(answer, n, "//", 2);
        if (plain)
            buf_add(out, answer, n);
        if (plain || !answer[n])
            return;
        answer += n + 1;
    }
}

static int all_points(struct points *out, const char *text, struct err *err)
{
    size_t n = strlen(text);
    uint32_t c;

    for (size_t at = 0; at < n;) {
        at += metric_next(text + at, n - at, &c);
        if (ARRAY_PUSH(out, c))
            return err_nomem(err);
    }
    return 0;
}

/* The length of the longest common subsequence. row: (b->n + 1) zeros. */
static int common_points(const struct points *a, const struct points *b, int *row)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0, before = 0; j < b->n; j++) { // before: the value up and to the left
            int above = row[j + 1];
            row[j + 1] = a->at[i] == b->at[j] ? before + 1 : above > row[j] ? above : row[j];
            before = above;
        }
    return row[b->n];
}

/* Rounded to hundredths, like fuzz.ratio(). */
static int edit_similarity(const char *a_text, const char *b_text, double *score, struct err *err)
{
    struct points a = { 0 }, b = { 0 };
    int *row = NULL, code = all_points(&a, a_text, err);

    *score = 1;
    if (!code)
        code = all_points(&b, b_text, err);
    if (!code)
        code = metric_check_steps((size_t)a.n, (size_t)b.n, err);
    double length = (double)a.n + b.n;
    if (!code && length > 0) {
        row = calloc((size_t)b.n + 1, sizeof(*row));
        code = row ? 0 : err_nomem(err);
    }
    if (row)
        *score = nearbyint(100 * (2.0 * common_points(&a, &b, row) / length)) / 100;
    free(row);
    free(a.at);
    free(b.at);
    return code;
}

static int code_score(const char *answer, const char *gold, double *score, struct err *err)
{
    struct buf line = { 0 };

    code_line(&line, answer);
    int code = buf_failed(&line) ? err_nomem(err) : edit_similarity(buf_str(&line), gold, score, err);
    buf_release(&line);
    return code;
}

/* ---- the whole ---------------------------------------------------------------- */

static int score_one(enum metric metric, const char *answer, const char *gold, double *score, struct err *err)
{
    *score = 0;
    switch (metric) {
    case METRIC_F1: return token_f1(answer, gold, normal_words, score, err);
    case METRIC_F1_CHARS: return token_f1(answer, gold, normal_chars, score, err);
    case METRIC_ROUGE_L: return rouge_l(answer, gold, score, err);
    case METRIC_CLASS: *score = class_score(answer, gold); return 0;
    case METRIC_RETRIEVAL: *score = retrieval_score(answer, gold); return 0;
    case METRIC_COUNT: *score = number_score(answer, gold, strlen(gold)); return 0;
    case METRIC_EDIT: return code_score(answer, gold, score, err);
    default: return 0;
    }
}

int metric_score(const char *dataset, const char *answer, const struct metric_gold *gold, double *score,
                 struct err *err)
{
    enum metric metric = metric_of(dataset);
    bool line = is_among(first_lines, dataset);
    const char *begin = line ? answer + strspn(answer, "\n") : answer;

    *score = metric == METRIC_NONE ? (double)NAN : 0;
    if (metric == METRIC_NONE || metric >= METRIC_NAMED)
        return metric == METRIC_NONE ? 0 : suite_score(metric, answer, gold, score, err);
    char *text = strndup(begin, line ? strcspn(begin, "\n") : strlen(begin));
    int code = text ? 0 : err_nomem(err);
    for (int i = 0; i < gold->n && !code; i++) {
        double one;
        code = score_one(metric, text, gold->at[i], &one, err);
        *score = !code && one > *score ? one : *score;
    }
    free(text);
    return code;
}

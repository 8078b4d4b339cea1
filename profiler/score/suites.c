/* suites.c - the metrics of RULER, of SCBench, which InfiniteBench shares, and of LongBench v2 as kvpress has it. The
 * functions named here are SCBench's; tests/golden/metric/suites.py runs the code of all three. */
#include "base/buf.h"
#include "base/utf8.h"
#include "profiler/score/metric_internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static int lower(struct buf *out, const char *text, struct err *err)
{
    size_t n = strlen(text);
    char bytes[4];

    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += metric_next(text + at, n - at, &c);
        buf_add(out, bytes, (size_t)utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)c), bytes));
    }
    return buf_failed(out) ? err_nomem(err) : 0;
}

/* *n: how many of the right answers are in the answer, in any case. */
static int count_named(const char *answer, const struct metric_gold *gold, int *n, struct err *err)
{
    struct buf text = { 0 }, name = { 0 };
    int code = lower(&text, answer, err);

    for (int i = 0; i < gold->n && !code; i++) {
        buf_clear(&name);
        code = lower(&name, gold->at[i], err);
        *n += !code && strstr(buf_str(&text), buf_str(&name));
    }
    buf_release(&text);
    buf_release(&name);
    return code;
}

/* ---- numbers ---------------------------------------------------------------- */

static const char digits[] = "0123456789";
enum { NUMBER = 64 }; // bytes; no right answer is a longer number

/* The answer's first number; "" if there is none or it is too long. */
static void first_number(char out[NUMBER], const char *answer, bool fraction)
{
    answer += strcspn(answer, digits);
    size_t n = strspn(answer, digits), more = answer[n] == '.' && fraction ? strspn(answer + n + 1, digits) : 0;
    n += more ? more + 1 : 0;
    n = n < NUMBER ? n : 0;
    memcpy(out, answer, n);
    out[n] = '\0';
}

/* ---- choices ---------------------------------------------------------------- */

static bool is_right(const struct metric_gold *gold, const char *text, size_t n)
{
    for (int i = 0; i < gold->n; i++)
        if (strlen(gold->at[i]) == n && memcmp(gold->at[i], text, n) == 0)
            return true;
    return false;
}

/* The rest of get_score_one_longbook_choice_eng(), for a text without punctuation: what follows "answer is:" or the
 * like and one more character, or else the first of the words A, B, C, D, AB, BC, ... */
static bool names_choice(const char *text, const struct metric_gold *gold)
{
    static const char *const phrases[] = { "answer is:", "answer:", "answer is", "option is" };
    const char *at = NULL;
    bool right = false;
    uint32_t c;

    for (size_t p = 0; p < sizeof(phrases) / sizeof(*phrases) && !at; p++) {
        at = strstr(text, phrases[p]);
        at += at ? strlen(phrases[p]) : 0;
    }
    if (at) {
        at += *at ? metric_next(at, strlen(at), &c) : 0;
        for (int i = 0; i < gold->n; i++)
            right |= *at && strncmp(at, gold->at[i], strlen(gold->at[i])) == 0;
        return right;
    }
    for (size_t n; *text; text += n ? n : 1) {
        n = strcspn(text, " \t\r");
        if (n > 0 && memmem("ABCD", 4, text, n))
            return is_right(gold, text, n);
    }
    return false;
}

/* The right answers are the text of a choice and its letter. */
static int choice_score(const char *answer, const struct metric_gold *gold, double *score, struct err *err)
{
    static const char space[] = " \t\r\n", marks[] = "\n\"'.,?!{} ";
    struct buf text = { 0 };

    answer += strspn(answer, space);
    size_t n = strlen(answer);
    while (n > 0 && strchr(space, answer[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (!strchr(marks, answer[i]))
            buf_addc(&text, answer[i]);
        else if (text.n == 0 || text.at[text.n - 1] != ' ')
            buf_addc(&text, ' ');
    if (n > 0 && strchr("ABCD", *answer))
        *score = is_right(gold, answer, 1);
    else
        *score = n > 0 && (is_right(gold, answer, n) || names_choice(buf_str(&text), gold));
    int code = buf_failed(&text) ? err_nomem(err) : 0;
    buf_release(&text);
    return code;
}

/* "The correct answer is (B)", with or without brackets and stars. */
static int letter_score(const char *answer, const char *gold, double *score, struct err *err)
{
    static const char says[] = "The correct answer is ";
    struct buf text = { 0 };
    size_t n = strlen(gold);

    for (; *answer; answer++)
        if (*answer != '*')
            buf_addc(&text, *answer);
    for (const char *at = buf_str(&text); (at = strstr(at, says)) != NULL;) {
        at += sizeof(says) - 1;
        if (strncmp(at, gold, n) == 0 || (*at == '(' && strncmp(at + 1, gold, n) == 0 && at[n + 1] == ')'))
            *score = 1;
    }
    int code = buf_failed(&text) ? err_nomem(err) : 0;
    buf_release(&text);
    return code;
}

/* ---- the whole ---------------------------------------------------------------- */

int suite_score(enum metric metric, const char *answer, const struct metric_gold *gold, double *score, struct err *err)
{
    const char *right = gold->n ? gold->at[0] : "";
    char number[NUMBER];
    int n = 0, code = 0;

    first_number(number, answer, metric == METRIC_VALUE && strchr(right, '.'));
    switch (metric) {
    case METRIC_CHOICE: return choice_score(answer, gold, score, err);
    case METRIC_LETTER: return letter_score(answer, right, score, err);
    case METRIC_VALUE: *score = *number && strtod(number, NULL) == strtod(right, NULL); return 0;
    case METRIC_NUMBER: *score = strcmp(number, right) == 0; return 0;
    case METRIC_ROUGE_LSUM:
        *score = strcmp(number, right) == 0;
        return right[strspn(right, digits)] ? rouge_lsum(answer, right, score, err) : 0;
    case METRIC_PART: *score = strpbrk(right, " \n") ? (double)NAN : strstr(answer, right) != NULL; return 0;
    default: code = count_named(answer, gold, &n, err);
    }
    double share = gold->n ? (double)n / gold->n : 0;
    *score = metric == METRIC_ANY ? n > 0 : metric == METRIC_NAMED ? share : nearbyint(100 * share) / 100;
    return code;
}

/* segments.c - one pass over the text that decides at each stop and each line end whether a segment ends there. A full
 * stop is judged by the characters around it, a line end by its line's length and the next line's start. */
#include "qgen/segments.h"

#include "base/array.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_WRAPPED = 40,  /* bytes; a shorter line ends where its author wanted */
    MAX_WRAPPED = 120, /* a longer line is not wrapped at all */
    MAX_HEADING = 80,
    MAX_LABEL = 24, /* of a line that begins "Speaker:" */
    MAX_NUMBER = 4, /* digits of a line that begins "12." */
};

struct cutter {
    const char *text;
    size_t n;
    struct segments *out;
};

static bool is_space(char c)
{
    return isspace((unsigned char)c) != 0;
}

/* ---- where a sentence ends ---------------------------------------------- */

/* A full stop after one of these does not end a sentence, even before a blank and a capital. */
static bool is_abbreviation(const char *word, size_t n)
{
    static const char *const known[] = { "Mr", "Mrs", "Ms",  "Dr", "Prof", "St",  "vs", "etc", "e.g", "i.e",
                                         "cf", "al",  "Fig", "Eq", "No",   "Vol", "pp", "Inc", "Ltd", "Jr" };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strlen(known[i]) == n && memcmp(known[i], word, n) == 0)
            return true;
    return n == 1 && isalpha((unsigned char)*word); /* an initial */
}

/* Is the word that ends at `end` an abbreviation, or a number that opens a list item at `start`? */
static bool stop_is_inside(const struct cutter *c, size_t start, size_t end)
{
    size_t word = end;

    while (word > start && !is_space(c->text[word - 1]) && !strchr("([\"'", c->text[word - 1]))
        word--;
    if (is_abbreviation(c->text + word, end - word))
        return true;
    return word == start && end - word <= 3 && isdigit((unsigned char)c->text[word]);
}

/* Length of the stop at i, with the quotes and brackets that close after it, or 0 when no sentence ends there. */
static size_t stop_at(const struct cutter *c, size_t start, size_t i)
{
    static const char *const wide[] = { "\u3002", "\uff01", "\uff1f", "\uff1b", "\u0964", "\u061f", "\u06d4" };

    for (size_t w = 0; w < sizeof(wide) / sizeof(*wide); w++) {
        size_t n = strlen(wide[w]);
        if (c->n - i >= n && memcmp(c->text + i, wide[w], n) == 0)
            return n;
    }
    if (!strchr(".!?", c->text[i]))
        return 0;
    size_t end = i + 1;
    while (end < c->n && strchr(".!?\"')]", c->text[end]))
        end++;
    if (end < c->n && !is_space(c->text[end]))
        return 0;
    size_t next = end;
    while (next < c->n && is_space(c->text[next]))
        next++;
    if (next < c->n && islower((unsigned char)c->text[next]))
        return 0;
    return c->text[i] == '.' && stop_is_inside(c, start, i) ? 0 : end - i;
}

/* ---- what a line end means ---------------------------------------------- */

static size_t line_end(const struct cutter *c, size_t at)
{
    const char *nl = at < c->n ? memchr(c->text + at, '\n', c->n - at) : NULL;

    return nl ? (size_t)(nl - c->text) : c->n;
}

/* Does the line begin an item: a bullet, "(a)", "12.", "Speaker:", "@tag", code? */
static bool opens_item(const char *s, size_t n)
{
    size_t i = 0;

    if (n == 0 || strchr("-*#>|@{}/", *s) || (*s == '(' && n > 2 && (s[2] == ')' || s[3] == ')')))
        return true;
    while (i < n && i < MAX_NUMBER && isdigit((unsigned char)s[i]))
        i++;
    if (i > 0 && i < n && (s[i] == '.' || s[i] == ')'))
        return true;
    for (i = 0; i < n && i < MAX_LABEL && (isalnum((unsigned char)s[i]) || s[i] == ' '); i++)
        ;
    return i > 0 && i < n && s[i] == ':';
}

/* Does the sentence in the line [at, end) continue in the next line? */
static bool is_wrapped(const struct cutter *c, size_t at, size_t end)
{
    size_t next = end + 1;

    if (end >= c->n || end - at < MIN_WRAPPED || end - at > MAX_WRAPPED)
        return false;
    size_t next_end = line_end(c, next);
    while (next < next_end && is_space(c->text[next]))
        next++;
    return !opens_item(c->text + next, next_end - next);
}

/* step -1: is there only white space before `at`, in its line and the line above? step 1: after `at`, and below? */
static bool is_alone(const struct cutter *c, size_t at, int step)
{
    for (int line_ends = 0; line_ends < 2;) {
        if (at == (step < 0 ? 0 : c->n))
            return true;
        char next = c->text[step < 0 ? --at : at++];
        if (!is_space(next))
            return false;
        line_ends += next == '\n';
    }
    return true;
}

/* Is it a short line between two blank ones, and either numbered or not a sentence? */
static bool is_heading(const struct cutter *c, size_t at, size_t end)
{
    size_t letters = 0;

    if (end - at > MAX_HEADING || !is_alone(c, at, -1) || !is_alone(c, end, 1))
        return false;
    for (size_t i = at; i < end; i++)
        letters += isalpha((unsigned char)c->text[i]) || (unsigned char)c->text[i] >= 0x80;
    return letters >= 3 && (isdigit((unsigned char)c->text[at]) || !strchr(".,;:!?", c->text[end - 1]));
}

/* ---- cutting ------------------------------------------------------------ */

static int add_segment(struct cutter *c, size_t at, size_t end, struct err *err)
{
    struct segment segment = { .at = at, .n = end - at, .heading = is_heading(c, at, end) };

    return ARRAY_PUSH(c->out, segment) ? err_nomem(err) : 0;
}

/* Where to cut a range that is too long: at the last blank of its second half, else between two characters. */
static size_t cut_point(const struct cutter *c, size_t at)
{
    size_t end = at + MAX_SEGMENT;

    for (size_t i = end; i > at + MAX_SEGMENT / 2; i--)
        if (is_space(c->text[i]))
            return i;
    while (end > at + MAX_SEGMENT - 4 && ((unsigned char)c->text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

/* Adds [at, end) without the white space around it, in segments of at most MAX_SEGMENT. */
static int add_range(struct cutter *c, size_t at, size_t end, struct err *err)
{
    for (;;) {
        while (at < end && is_space(c->text[at]))
            at++;
        while (end > at && is_space(c->text[end - 1]))
            end--;
        if (at == end)
            return 0;
        if (end - at <= MAX_SEGMENT)
            return add_segment(c, at, end, err);
        size_t cut = cut_point(c, at), tail = cut;
        while (tail > at && is_space(c->text[tail - 1]))
            tail--;
        if (add_segment(c, at, tail, err))
            return err->code;
        at = cut;
    }
}

int segments_cut(struct segments *out, const char *text, size_t n, struct err *err)
{
    struct cutter c = { .text = text, .n = n, .out = out };
    size_t start = 0, line = 0;

    *out = (struct segments){ 0 };
    for (size_t i = 0; i < n;) {
        size_t stop = text[i] == '\n' ? 0 : stop_at(&c, start, i), next = i + (stop ? stop : 1);
        bool ends = stop || (text[i] == '\n' && !is_wrapped(&c, line, i));
        if (text[i] == '\n')
            line = i + 1;
        i = next;
        if (!ends)
            continue;
        if (add_range(&c, start, i, err)) {
            segments_release(out);
            return err->code;
        }
        while (i < n && is_space(text[i]) && text[i] != '\n')
            i++;
        start = i;
    }
    if (add_range(&c, start, n, err)) {
        segments_release(out);
        return err->code;
    }
    return 0;
}

void segments_release(struct segments *out)
{
    free(out->at);
    *out = (struct segments){ 0 };
}

/* source.c - finds the labels and instructions to leave out when the text is opened; then takes one segment at a time
 * as a row of words (or of characters, in a script without blanks) and picks the shortest unique quotation.
 */
#include "qgen/source.h"

#include "qgen/question_list.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LABEL = 24,      /* bytes before the colon */
    MIN_REPEATS = 3,     /* segments with the same label: it belongs to a form, not to the text */
    MAX_TEMPLATE = 1500, /* bytes; the longest opening among LongBench's templates has 600 */
    MIN_TERM = 3,        /* bytes */
    MAX_TERM = 40,       /* bytes; a longer subject of "means" is not a term */
    SEARCHES = 256,      /* of the whole text, before its repeats are computed */
    MAX_GROWTH = 16,     /* units added to a quotation; if it is still not unique, it is a form that repeats */
};

/* ---- opening ------------------------------------------------------------ */

/* Length of a label ("Question: ", "Passage 12: ") at the start with the blanks after it, or 0. */
static size_t label_length(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && i < MAX_LABEL && (isalnum((unsigned char)s[i]) || s[i] == ' '))
        i++;
    if (i == 0 || i == n || s[i] != ':' || !isalpha((unsigned char)s[0]))
        return 0;
    i++;
    if (i < n && !isspace((unsigned char)s[i]))
        return 0;
    while (i < n && isspace((unsigned char)s[i]))
        i++;
    return i;
}

/* One key for "Passage 3:" and "Passage 12:": numbers become '#'. Returns its length. */
static size_t label_key(char key[MAX_LABEL + 2], const char *s)
{
    size_t n = 0;

    for (size_t i = 0; s[i] != ':'; i++) {
        char c = isdigit((unsigned char)s[i]) ? '#' : s[i];
        if (c != '#' || n == 0 || key[n - 1] != '#')
            key[n++] = c;
    }
    return n;
}

static int count_labels(struct source *s, struct err *err)
{
    char key[MAX_LABEL + 2];

    s->label_count = calloc((size_t)s->segments.n + 1, sizeof(*s->label_count));
    if (!s->label_count)
        return err_nomem(err);
    for (int i = 0; i < s->segments.n; i++) {
        const char *at = s->text + s->segments.at[i].at;
        if (!label_length(at, s->segments.at[i].n))
            continue;
        int label = map_add(&s->labels, key, label_key(key, at), NULL);
        if (label == MAP_NOMEM)
            return err_nomem(err);
        s->label_count[label]++;
    }
    return 0;
}

/* Does the sentence begin like the instructions of a prompt template? */
static bool is_instruction(const char *s, size_t n)
{
    static const char *const opening[] = { "You are given",
                                           "Answer ",
                                           "Read the following",
                                           "Write a ",
                                           "Summarize ",
                                           "Please ",
                                           "Only give",
                                           "The following are",
                                           "If the question",
                                           "Do not provide",
                                           "Here are some examples" };

    for (size_t i = 0; i < sizeof(opening) / sizeof(*opening); i++)
        if (n >= strlen(opening[i]) && memcmp(s, opening[i], strlen(opening[i])) == 0)
            return true;
    return false;
}

static void skip_instructions(struct source *s)
{
    const struct segment *p = s->segments.at;
    int i = 0;

    while (i < s->segments.n && p[i].at < MAX_TEMPLATE && is_instruction(s->text + p[i].at, p[i].n))
        i++;
    s->first = i < s->segments.n ? i : 0;
    s->begin = s->segments.n ? p[s->first].at : 0;
}

/* The number of bytes that text_flatten() makes of the bytes from `at` to `end`; text[at] is not white space. */
static size_t flat_length(const char *text, size_t at, size_t end)
{
    size_t n = 0;

    for (size_t i = at; i < end; i++)
        n += !isspace((unsigned char)text[i]) || !isspace((unsigned char)text[i - 1]);
    return n;
}

/* Makes the flat text and finds the segments in it: the white space between them becomes a blank. */
static int flatten(struct source *s, struct err *err)
{
    const struct segments *cut = &s->segments;
    size_t at = 0;

    text_flatten(&s->flat, s->text, s->n);
    s->flat_at = calloc((size_t)cut->n + 1, sizeof(*s->flat_at));
    if (buf_failed(&s->flat) || !s->flat_at)
        return err_nomem(err);
    for (int i = 0; i < cut->n; i++) {
        s->flat_at[i] = at;
        size_t next = i + 1 < cut->n ? cut->at[i + 1].at : s->n;
        at += flat_length(s->text, cut->at[i].at, next);
    }
    return 0;
}

int source_open(struct source *s, const char *text, struct err *err)
{
    *s = (struct source){ .text = text, .n = strlen(text) };
    if (segments_cut(&s->segments, text, s->n, err))
        return err->code;
    skip_instructions(s);
    if (flatten(s, err) || count_labels(s, err))
        source_close(s);
    else
        return 0;
    return err->code;
}

void source_close(struct source *s)
{
    segments_release(&s->segments);
    buf_release(&s->flat);
    map_release(&s->labels);
    repeats_release(&s->repeats);
    free(s->flat_at);
    free(s->label_count);
    *s = (struct source){ 0 };
}

/* ---- a segment in units ------------------------------------------------- */

/* A segment as units: words, or characters where a script has no blanks. */
struct view {
    char flat[MAX_SEGMENT + 1];
    size_t at;                 // its position in the source's flat text
    int unit[MAX_SEGMENT + 2]; // (n + 1) the first byte of each unit, and the end
    int n;
    bool words;
    int min, rest; // units that a quotation needs at least, and that must follow it
};

struct span {
    const char *at;
    int n;
};

static struct span span_of(const struct view *v, int from, int n)
{
    int end = v->unit[from + n] - (v->words ? 1 : 0);

    return (struct span){ .at = v->flat + v->unit[from], .n = end - v->unit[from] };
}

static void find_units(struct view *v, int bytes)
{
    int blanks = 0, chars = 0;

    for (int i = 0; i < bytes; i++) {
        blanks += v->flat[i] == ' ';
        chars += ((unsigned char)v->flat[i] & 0xc0) != 0x80;
    }
    v->words = chars < 16 * (blanks + 1); /* in no language are words 16 characters long on average */
    v->min = v->words ? 4 : 10;
    v->rest = v->words ? 3 : 8;
    v->n = 0;
    for (int i = 0; i < bytes; i++)
        if (v->words ? i == 0 || v->flat[i - 1] == ' ' : ((unsigned char)v->flat[i] & 0xc0) != 0x80)
            v->unit[v->n++] = i;
    v->unit[v->n] = bytes + (v->words ? 1 : 0);
}

/* Length of the number of an item ("12. ", "a) ", "(iv) ") at the start, or 0. */
static size_t item_length(const char *s, size_t n)
{
    size_t i = n > 0 && *s == '(', from = i;

    while (i < n && i < from + 3 && isalnum((unsigned char)s[i]))
        i++;
    if (i == from || i + 1 >= n || !strchr(from ? ")" : ".)", s[i]) || s[i + 1] != ' ')
        return 0;
    return i + 2;
}

/* Leaves out a label that repeats and the number of an item; collapses white space to single blanks. */
static void view_open(struct view *v, const struct source *s, int i)
{
    const struct segment *p = &s->segments.at[i];
    const char *at = s->text + p->at;
    size_t label = label_length(at, p->n);
    char key[MAX_LABEL + 2];
    int bytes = 0;

    if (label && i != s->first && s->label_count[map_find(&s->labels, key, label_key(key, at))] < MIN_REPEATS)
        label = 0;
    if (!p->heading)
        label += item_length(at + label, p->n - label);
    while (label < p->n && isspace((unsigned char)at[label]))
        label++;
    v->at = s->flat_at[i] + flat_length(s->text, p->at, p->at + label);
    for (size_t b = label; b < p->n; b++) {
        bool space = isspace((unsigned char)at[b]) != 0;
        if (!space)
            v->flat[bytes++] = at[b];
        else if (bytes && v->flat[bytes - 1] != ' ')
            v->flat[bytes++] = ' ';
    }
    v->flat[bytes] = '\0';
    find_units(v, bytes);
}

/* Each search takes time in proportion to the text, and most texts need few. In a text that repeats itself most
 * quotations fail, so after SEARCHES searches all its repeats are computed at once. Without memory for them the search
 * continues. */
static bool is_unique(struct source *s, const struct view *v, struct span q)
{
    const char *end = s->flat.at + s->flat.n, *at = s->flat.at + v->at + (q.at - v->flat);
    struct err ignored;

    if (s->repeats.longest)
        return repeats_none(&s->repeats, (size_t)(at - s->flat.at), (size_t)q.n);
    s->searched += s->flat.n;
    if (s->searched / SEARCHES >= s->flat.n && repeats_find(&s->repeats, s->flat.at, s->flat.n, &ignored))
        s->searched = 0;
    const char *first = memmem(s->flat.at, s->flat.n, q.at, (size_t)q.n);
    return first == at && !memmem(at + 1, (size_t)(end - at - 1), q.at, (size_t)q.n);
}

/* The shortest quotation from unit `from` on that occurs in the text once and leaves something to ask for. */
static bool quote_from(struct source *s, const struct view *v, int from, struct span *q)
{
    for (int n = v->min; n <= v->min + MAX_GROWTH && from + n + v->rest <= v->n; n++) {
        *q = span_of(v, from, n);
        if (is_unique(s, v, *q))
            return true;
    }
    return false;
}

/* The shortest unique quotation that ends before unit `end`. */
static bool quote_before(struct source *s, const struct view *v, int end, struct span *q)
{
    for (int n = v->min; n <= v->min + MAX_GROWTH && n <= end; n++) {
        *q = span_of(v, end - n, n);
        if (is_unique(s, v, *q))
            return true;
    }
    return false;
}

static bool has_digit(struct span q)
{
    for (int i = 0; i < q.n; i++)
        if (isdigit((unsigned char)q.at[i]))
            return true;
    return false;
}

/* Are more than half of the bytes letters? If not, it is a table or a line of dashes. */
static bool is_prose(const struct view *v)
{
    int letters = 0, bytes = 0;

    for (; v->flat[bytes]; bytes++)
        letters += isalpha((unsigned char)v->flat[bytes]) || (unsigned char)v->flat[bytes] >= 0x80;
    return 2 * letters > bytes;
}

/* ---- the kinds ---------------------------------------------------------- */

/* Adds the question with the quotation in it, in single quotes if it holds double ones. */
static bool put(struct buf *out, const char *before, struct span q, const char *after)
{
    char mark = memchr(q.at, '"', (size_t)q.n) ? '\'' : '"';

    buf_printf(out, "%s%c%.*s%c%s", before, mark, q.n, q.at, mark, after);
    return true;
}

static bool ask_repeat(struct source *s, const struct view *v, struct buf *out)
{
    struct span q;

    return is_prose(v) && quote_from(s, v, 0, &q) &&
           put(out, "Repeat the sentence from the text that starts with ", q, ".");
}

static bool ask_after(struct source *s, const struct view *v, struct buf *out)
{
    struct span q;

    return is_prose(v) && v->n >= 3 * v->min && quote_from(s, v, v->n / 3, &q) &&
           put(out, "What does the text say after the words ", q, "?");
}

static bool ask_number(struct source *s, const struct view *v, struct buf *out)
{
    struct span q;

    for (int u = v->min; v->words && u < v->n; u++)
        if (has_digit(span_of(v, u, 1)) && quote_before(s, v, u, &q) && !has_digit(q))
            return put(out, "Which number does the text give after the words ", q, "?");
    return false;
}

/* Is the word capitalised inside a sentence, after a word in small letters without a stop? */
static bool is_name(struct span word, struct span before)
{
    return word.n > 2 && isupper((unsigned char)word.at[0]) && islower((unsigned char)word.at[1]) &&
           islower((unsigned char)before.at[0]) && isalnum((unsigned char)before.at[before.n - 1]);
}

static bool ask_name(struct source *s, const struct view *v, struct buf *out)
{
    struct span q;

    for (int u = v->min; v->words && u < v->n; u++)
        if (is_name(span_of(v, u, 1), span_of(v, u - 1, 1)) && quote_before(s, v, u, &q))
            return put(out, "Which name does the text give after the words ", q, "?");
    return false;
}

/* q without the quotation marks around it. */
static struct span bare(struct span q)
{
    for (; q.n > 0 && strchr("\"'`", q.at[0]); q.n--)
        q.at++;
    while (q.n > 0 && strchr("\"'`", q.at[q.n - 1]))
        q.n--;
    return q;
}

static bool ask_meaning(const struct view *v, struct buf *out)
{
    static const char *const verb[] = { " means ",   " refers to ",  " is defined as ",
                                        " denotes ", " shall mean ", " stands for " };

    for (size_t i = 0; i < sizeof(verb) / sizeof(*verb); i++) {
        const char *at = strstr(v->flat, verb[i]);
        struct span term = bare((struct span){ .at = v->flat, .n = at ? (int)(at - v->flat) : 0 });
        if (term.n >= MIN_TERM && term.n <= MAX_TERM && !memchr(term.at, '"', (size_t)term.n))
            return put(out, "What does ", term, " mean in the text?");
    }
    return false;
}

static bool ask_section(struct source *s, const struct view *v, int i, struct buf *out)
{
    struct span title = span_of(v, 0, v->n);

    if (!s->segments.at[i].heading || i + 1 == s->segments.n || s->segments.at[i + 1].heading ||
        !is_unique(s, v, title))
        return false;
    return put(out, "What does the section ", title, " say?");
}

static bool ask_next(struct source *s, const struct view *v, int i, struct buf *out)
{
    struct span all = span_of(v, 0, v->n);

    return i + 1 < s->segments.n && 2 * v->n >= v->min && all.n <= MAX_SEGMENT / 2 && is_unique(s, v, all) &&
           put(out, "What does the text say right after this: ", all, "?");
}

bool source_question(struct source *s, enum source_kind kind, int i, struct buf *out)
{
    struct view v;

    view_open(&v, s, i);
    if (v.n == 0)
        return false;
    switch (kind) {
    case SOURCE_REPEAT: return !s->segments.at[i].heading && ask_repeat(s, &v, out);
    case SOURCE_AFTER: return ask_after(s, &v, out);
    case SOURCE_NUMBER: return ask_number(s, &v, out);
    case SOURCE_NAME: return ask_name(s, &v, out);
    case SOURCE_MEANING: return ask_meaning(&v, out);
    case SOURCE_SECTION: return ask_section(s, &v, i, out);
    case SOURCE_NEXT: return ask_next(s, &v, i, out);
    case SOURCE_NONE:
    case SOURCE_KINDS: break;
    }
    return false;
}

/* conduct.c - the first sign decides whether a text is JSON or code, the beginnings of its lines whether it is a table
 * or a list; a refusal begins a sentence near the start.
 */
#include "profiler/score/conduct.h"

#include <ctype.h>
#include <string.h>

enum {
    TELLING_WORDS = 8, // fewer say little about a language
    REFUSAL_WORDS = 16 // a refusal begins within so many words
};

/* ---- form ---------------------------------------------------------------- */

static const char *past_blanks(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Past "```json" and the line's end; elsewhere unchanged. */
static const char *past_fence(const char *s)
{
    size_t n = strncmp(s, "```", 3) == 0 ? 3 : 0;

    while (n && isalnum((unsigned char)s[n]))
        n++;
    return past_blanks(s + n);
}

/* Does the text, behind a fence or without, begin as an object or a list of JSON and, unless it is cut, end as one? */
static bool is_json(const char *text, bool cut)
{
    const char *s = past_fence(past_blanks(text));
    size_t n = strlen(s);
    char first = *s, next = first ? *past_blanks(s + 1) : '\0';

    while (n && strchr(" \t\r\n`", s[n - 1]))
        n--;
    if (first == '{')
        return (next == '"' || next == '}' || (cut && !next)) && (cut || s[n - 1] == '}');
    return first == '[' && next && strchr("{[\"]", next) && (cut || s[n - 1] == ']');
}

/* Does the line begin like one of a list: "- ", "* ", "12. ", "3) " or a bullet? */
static bool is_item(const char *line)
{
    size_t digits = strspn(line, "0123456789");

    if (strncmp(line, "\xe2\x80\xa2", 3) == 0)
        return true;
    if (digits)
        return digits <= 3 && (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ';
    return (*line == '-' || *line == '*') && line[1] == ' ';
}

static void count_lines(struct conduct *c, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n");
        c->items += is_item(line);
        c->rows += *line == '|';
    }
}

static enum answer_form form_of(const struct conduct *c, const char *text)
{
    if (is_json(text, c->cut))
        return FORM_JSON;
    if (strncmp(past_blanks(text), "```", 3) == 0)
        return FORM_CODE;
    return c->rows > 1 ? FORM_TABLE : c->items > 1 ? FORM_LIST : FORM_PROSE;
}

/* A cut answer may have had room for one line of a table or a list. */
static bool has_form(const struct conduct *c, enum answer_form form)
{
    return c->form == form || (c->cut && ((form == FORM_LIST && c->items) || (form == FORM_TABLE && c->rows)));
}

/* ---- refusals ------------------------------------------------------------ */

/* Do the words from i on begin with these, which blanks divide? */
static bool has_words(const struct words *w, int i, const char *phrase)
{
    for (; *phrase; i++) {
        size_t n = strcspn(phrase, " ");
        if (i >= w->n || w->at[i].n != n || memcmp(word_plain(w, i), phrase, n) != 0)
            return false;
        phrase += n + (phrase[n] == ' ');
    }
    return true;
}

static bool is_refusal(const struct words *w, int i)
{
    static const char *const phrase[] = { "i cannot",      "i can't",        "i can not",   "i won't",
                                          "i will not",    "i must decline", "i am unable", "i'm unable",
                                          "i am not able", "i'm not able",   "i am sorry",  "i'm sorry",
                                          "sorry",         "i apologize",    "i apologise", "as an ai",
                                          "i'm an ai",     "i am an ai",     "we cannot",   "we can't" };

    for (size_t k = 0; k < sizeof(phrase) / sizeof(*phrase); k++)
        if (has_words(w, i, phrase[k]))
            return true;
    return false;
}

static bool refuses(const struct words *w)
{
    for (int i = 0; i < w->n && i < REFUSAL_WORDS; i++)
        if (is_refusal(w, i))
            return true;
    return false;
}

/* ---- both ---------------------------------------------------------------- */

struct conduct conduct_read(const char *text, bool cut, const struct words *w, bool english)
{
    struct conduct c = { .english = english, .cut = cut, .refuses = english && refuses(w) };
    int plain = 0;

    for (int i = 0; i < w->n; i++)
        plain += w->at[i].kind == WORD_PLAIN;
    c.telling = plain >= TELLING_WORDS;
    count_lines(&c, text);
    c.form = form_of(&c, text);
    return c;
}

static bool other_language(const struct conduct *a, const struct conduct *b)
{
    return a->telling && b->telling && a->english != b->english;
}

const char *conduct_lost(const struct conduct *reference, const struct conduct *answer)
{
    if (reference->refuses != answer->refuses)
        return answer->refuses ? "refuses" : "no longer refuses";
    if (reference->form != FORM_PROSE && !has_form(answer, reference->form))
        return "lost its form";
    return other_language(reference, answer) ? "in another language" : NULL;
}

void conduct_compare(const struct conduct *reference, const struct conduct *answer, int *facts, int *kept)
{
    if (reference->form != FORM_PROSE) {
        ++*facts;
        *kept += has_form(answer, reference->form);
    }
    if (reference->refuses || answer->refuses) {
        ++*facts;
        *kept += reference->refuses && answer->refuses;
    }
    *facts += other_language(reference, answer);
}

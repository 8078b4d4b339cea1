/* requests_slug.c - a few words of a context for its id, by which a person tells it from others.
 *
 * They come from the context's own text alone: words chosen by comparing contexts would change with every night's log.
 * The last message of some length is looked at, so what conversations share in their prefixes, and the tokens of chat
 * templates, are left out. In it, the most frequent names are taken: words that are capital within sentences and never
 * written small. What a template or instructions say comes once; what a document is about comes again and again. Code
 * and scripts without capitals have no names: there any frequent long words are taken, and in short texts the first.
 */
#include "base/array.h"
#include "base/map.h"
#include "logs/requests_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLUG_MAX = 32,      // bytes, with a hyphen after each word
    PART_MIN = 64,      // bytes of a message that says what a context is about
    PART_MAX = 1 << 16, // bytes of it that are looked at
    WORD_MAX = 24,      // bytes of a word
    NAME_MIN = 3,       // bytes of a name
    NAME_TIMES = 2,     // how often a name comes at least, within sentences
    LONG_MIN_BYTES = 5, // of a long word
    LONG_TIMES = 3,     // how often it comes at least
    BEST = 6,           // frequent words that are tried
};

/* ---- the part that says what a context is about ----------------------------- */

struct part {
    const char *at, *end;
};

/* The last part between special tokens that is long enough; if none is, the last with any text. */
static struct part last_part(struct part whole, struct part best)
{
    struct part part = { whole.at, whole.at };

    for (const char *s = whole.at; s <= whole.end;) {
        size_t n = s < whole.end ? requests_marker(s, whole.end) : 1;
        if (n) {
            while (part.at < s && isspace((unsigned char)*part.at))
                part.at++;
            part.end = s;
            bool is_long = part.end - part.at >= PART_MIN;
            if (part.end > part.at && (is_long || best.end - best.at < PART_MIN))
                best = part;
            part.at = s + n;
        }
        s += n ? n : 1;
    }
    return best;
}

static struct part part_of(const struct context *c)
{
    struct part best = { c->text, c->text }, message = { c->text, c->text };

    for (int i = 0; i < c->turns.n; i++) {
        message.at = message.end;
        message.end += c->turns.at[i].n;
        best = last_part(message, best);
    }
    if (best.end - best.at > PART_MAX)
        best.end = best.at + PART_MAX;
    return best;
}

/* ---- words ---------------------------------------------------------------- */

/* Bytes of the letter or digit at s; 0: something else. Of the characters beyond ASCII, the blocks of letters are
 * taken: no punctuation, controls of direction, symbols or emoji. */
static size_t letter_length(const char *s, const char *end)
{
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    if (c < 0x80)
        return isalnum(c) ? 1 : 0;
    bool is_letter = (c >= 0xc3 && c <= 0xe1) || (c == 0xe3 && (unsigned char)s[1] > 0x80) || (c >= 0xe4 && c <= 0xed);
    return is_letter && n <= (size_t)(end - s) ? n : 0;
}

struct word {
    char text[WORD_MAX + 4]; // in small letters
    size_t n;
    const char *at, *end;
    bool is_capital, has_digit;
};

/* The next word at or after s; false: there is none. A long one is cut. */
static bool next_word(struct word *w, const char *s, const char *end)
{
    size_t n = 0;

    while (s < end && !(n = letter_length(s, end)))
        s++;
    *w = (struct word){ .at = s,
                        .is_capital = s < end && (isupper((unsigned char)*s) ||
                                                  (n == 2 && *s == '\xc3' && (unsigned char)s[1] < 0x9f)) };
    for (; s < end && (n = letter_length(s, end)); s += n) {
        w->has_digit |= isdigit((unsigned char)*s);
        if (w->n + n > WORD_MAX)
            continue;
        memcpy(w->text + w->n, s, n);
        if (n == 1)
            w->text[w->n] = (char)tolower((unsigned char)*s);
        else if (n == 2 && *s == '\xc3' && (unsigned char)s[1] < 0x9f)
            w->text[w->n + 1] = (char)(s[1] + 0x20);
        w->n += n;
    }
    w->end = s;
    return w->n > 0;
}

/* Does the word stand within a sentence, and not before a colon, "Passage 3:"? */
static bool is_within(const struct word *w, const struct part *part)
{
    const char *before = w->at, *after = w->end;

    while (before > part->at && before[-1] == ' ')
        before--;
    while (after < part->end && (*after == ' ' || isdigit((unsigned char)*after)))
        after++;
    return before > part->at && before < w->at && (isalnum((unsigned char)before[-1]) || before[-1] == ',') &&
           !(after < part->end && *after == ':');
}

/* A word, and how often it comes: at all, and as a name; -1: it also comes in small letters. */
struct counted {
    int word, all, as_name;
};

static int by_names(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;

    return x->as_name != y->as_name ? (x->as_name < y->as_name ? 1 : -1) : x->word - y->word;
}

static int by_all(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;

    return x->all != y->all ? (x->all < y->all ? 1 : -1) : x->word - y->word;
}

static int count_words(const struct part *part, struct map *words, struct counted **counted, struct err *err)
{
    struct {
        struct counted *at;
        int n, cap;
    } list = { 0 };
    struct word w;

    for (const char *s = part->at; next_word(&w, s, part->end); s = w.end) {
        int i = map_add(words, w.text, w.n, NULL);
        if (i == MAP_NOMEM || (i == list.n && ARRAY_PUSH(&list, ((struct counted){ .word = i })))) {
            free(list.at);
            return err_nomem(err);
        }
        list.at[i].all += w.n >= LONG_MIN_BYTES;
        if (!w.is_capital || w.has_digit)
            list.at[i].as_name = -1;
        else if (list.at[i].as_name >= 0 && w.n >= NAME_MIN)
            list.at[i].as_name += is_within(&w, part);
    }
    *counted = list.at;
    return 0;
}

static void add_word(struct buf *id, const char *word, size_t n)
{
    if (id->n == 0 || id->n + n < SLUG_MAX) {
        buf_add(id, word, n);
        buf_addc(id, '-');
    }
}

static void choose_words(struct buf *id, const struct part *part, const struct map *words, struct counted *counted)
{
    size_t n = (size_t)words->n, n_best = 0;
    struct word w;

    qsort(counted, n, sizeof(*counted), by_names);
    while (n_best < n && n_best < BEST && counted[n_best].as_name >= NAME_TIMES)
        n_best++;
    if (n_best < 2) {
        qsort(counted, n, sizeof(*counted), by_all);
        for (n_best = 0; n_best < n && n_best < BEST && counted[n_best].all >= LONG_TIMES;)
            n_best++;
    }
    for (size_t i = 0; i < n_best && n_best > 1; i++)
        add_word(id, words->at[counted[i].word].key, words->at[counted[i].word].n);
    if (n_best > 1)
        return;
    for (const char *s = part->at; id->n < SLUG_MAX - NAME_MIN && next_word(&w, s, part->end); s = w.end)
        add_word(id, w.text, w.n);
}

int requests_add_slug(struct buf *id, const struct context *c, struct err *err)
{
    struct part part = part_of(c);
    struct map words = { 0 };
    struct counted *counted = NULL;
    int code = count_words(&part, &words, &counted, err);

    if (!code && words.n > 0)
        choose_words(id, &part, &words, counted);
    free(counted);
    map_release(&words);
    return code;
}

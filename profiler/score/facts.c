/* facts.c - the rules of docs/profiling.md#facts. Dates are found first, then numbers, then names, from left to right;
 * a word belongs to one fact at most. */
#include "profiler/score/facts.h"

#include "base/array.h"
#include "profiler/score/metric_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of words ------------------------------------------------------------ */

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool is_among(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* Words that say nothing by their capital at the beginning of a name or sentence; they also show English. */
static const char *const common[] = {
    "the",    "a",     "an",    "this",   "that",  "these", "those",   "it",       "its",      "he",    "she",
    "they",   "we",    "you",   "i",      "i'm",   "i've",  "i'll",    "i'd",      "his",      "her",   "their",
    "our",    "your",  "my",    "there",  "here",  "in",    "on",      "at",       "by",       "for",   "from",
    "with",   "of",    "to",    "and",    "or",    "but",   "as",      "if",       "when",     "while", "after",
    "before", "since", "until", "during", "then",  "also",  "thus",    "however",  "although", "so",    "because",
    "what",   "who",   "which", "where",  "why",   "how",   "is",      "are",      "was",      "were",  "be",
    "been",   "do",    "does",  "did",    "has",   "have",  "had",     "can",      "could",    "will",  "would",
    "should", "might", "must",  "each",   "every", "all",   "some",    "many",     "most",     "both",  "not",
    "no",     "yes",   "only",  "about",  "into",  "than",  "between", "according"
};

/* Common words of German, French, Spanish, Italian, Portuguese, Dutch and Polish that English does not have. */
static const char *const foreign[] = {
    "der", "das",  "und",  "ist",  "nicht", "ein",   "eine",   "einen", "einem", "dem",  "den",   "des",  "mit",
    "auf", "zu",   "im",   "sich", "auch",  "wird",  "werden", "sind",  "bei",   "oder", "durch", "nach", "la",
    "le",  "les",  "et",   "est",  "une",   "dans",  "que",    "qui",   "avec",  "ce",   "cette", "ne",   "pas",
    "il",  "elle", "sont", "el",   "los",   "las",   "y",      "es",    "una",   "por",  "para",  "su",   "como",
    "lo",  "gli",  "che",  "per",  "sono",  "della", "nel",    "um",    "uma",   "os",   "em",    "com",  "da",
    "het", "een",  "niet", "voor", "nie",   "jest",  "oraz",   "przez", "dla"
};

/* A number in words; `offered` ones have other meanings, too. */
static const struct {
    const char *word;
    int is;
    bool offered;
} number_words[] = {
    { "zero", 0, false },     { "one", 1, true },         { "two", 2, false },       { "three", 3, false },
    { "four", 4, false },     { "five", 5, false },       { "six", 6, false },       { "seven", 7, false },
    { "eight", 8, false },    { "nine", 9, false },       { "ten", 10, false },      { "eleven", 11, false },
    { "twelve", 12, false },  { "thirteen", 13, false },  { "fourteen", 14, false }, { "fifteen", 15, false },
    { "sixteen", 16, false }, { "seventeen", 17, false }, { "eighteen", 18, false }, { "nineteen", 19, false },
    { "twenty", 20, false },  { "thirty", 30, false },    { "forty", 40, false },    { "fifty", 50, false },
    { "sixty", 60, false },   { "seventy", 70, false },   { "eighty", 80, false },   { "ninety", 90, false },
    { "first", 1, true },     { "second", 2, true },      { "third", 3, false },     { "fourth", 4, false },
    { "fifth", 5, false },    { "sixth", 6, false },      { "seventh", 7, false },   { "eighth", 8, false },
    { "ninth", 9, false },    { "tenth", 10, false },
};

static const struct {
    const char *word;
    double times;
} scales[] = { { "hundred", 1e2 }, { "thousand", 1e3 }, { "million", 1e6 }, { "billion", 1e9 }, { "trillion", 1e12 } };

static const char *const months[] = { "january", "february", "march",     "april",   "may",      "june",
                                      "july",    "august",   "september", "october", "november", "december" };

static const char *const titles[] = { "mr", "mrs", "ms", "dr", "prof", "professor", "sir" };

static const char *const negations[] = { "no",      "not",     "never", "none",    "nothing", "nobody",
                                         "nowhere", "neither", "nor",   "without", "cannot" };

/* ---- reading -------------------------------------------------------------------- */

struct finder {
    struct facts *f;
    const struct word *word; // (n)
    int n;
};

static const char *plain(const struct finder *in, int i)
{
    return i < in->n ? word_plain(&in->f->words, i) : "";
}

static bool is_kind(const struct finder *in, int i, enum word_kind kind)
{
    return i < in->n && in->word[i].kind == kind;
}

/* Does the word `i` follow its neighbour after a blank or hyphen? */
static bool is_joined(const struct finder *in, int i)
{
    return i < in->n && in->word[i].is_joined;
}

/* Adds the words first .. first + n - 1 as a fact. */
static int add(const struct finder *in, struct fact fact, int first, int n)
{
    const struct word *last = &in->word[first + n - 1];

    fact.word = first;
    fact.n_words = n;
    fact.at = in->word[first].at;
    fact.bytes = last->at + last->bytes - fact.at;
    fact.half = in->f->words.cut && first + n == in->n;
    return ARRAY_PUSH(&in->f->found, fact);
}

/* ---- dates ------------------------------------------------------------------------ */

/* 1 to 12, or 0. Three letters are enough; a month needs its capital, for "may" and "march" are words. */
static int month_at(const struct finder *in, int i)
{
    if (!is_kind(in, i, WORD_PLAIN) || !in->word[i].capital)
        return 0;
    for (int m = 0; m < 12; m++)
        if (strcmp(plain(in, i), months[m]) == 0 || (in->word[i].n == 3 && strncmp(plain(in, i), months[m], 3) == 0) ||
            (m == 8 && !strcmp(plain(in, i), "sept")))
            return m + 1;
    return 0;
}

/* The word's number if it is whole, within low .. high and near the word before it; or 0. */
static int count_at(const struct finder *in, int i, int low, int high)
{
    const char *s = plain(in, i);
    size_t n = strspn(s, "0123456789");

    if (!is_kind(in, i, WORD_NUMBER) || s[n] || n > 4)
        return 0;
    int v = (int)strtol(s, NULL, 10);
    return v >= low && v <= high ? v : 0;
}

/* Is the word after a blank, or a comma and a blank? */
static bool is_near(const struct finder *in, int i)
{
    return i < in->n && in->word[i].at - in->word[i - 1].at - in->word[i - 1].bytes <= 2 &&
           in->word[i].sentence == in->word[i - 1].sentence;
}

static int year_at(const struct finder *in, int i)
{
    return is_near(in, i) ? count_at(in, i, 1000, 2999) : 0;
}

/* A day of one digit at the end of a cut text may be half a day. */
static int day_at(const struct finder *in, int i)
{
    bool half = in->f->words.cut && i == in->n - 1 && in->word[i].n == 1;

    return half ? 0 : count_at(in, i, 1, 31);
}

/* "2026-02-03" or "3.2.2026". */
static struct fact digits_date(const struct finder *in, int i)
{
    struct fact date = { .kind = FACT_DATE };
    char *end;
    const char *s = plain(in, i);
    int first = (int)strtol(s, &end, 10);

    date.month = (int)strtol(end + 1, &end, 10);
    int last = *end && end[1] ? (int)strtol(end + 1, NULL, 10) : 0;
    bool half = in->f->words.cut && i == in->n - 1 && *end && !end[2];
    date.year = first > 31 ? first : last;
    date.day = first <= 31 ? first : half ? 0 : last;
    return date;
}

/* The number of words of the date that begins at word i; 0: none. */
static int date_at(const struct finder *in, int i, bool english, struct fact *date)
{
    if (is_kind(in, i, WORD_DATE)) {
        *date = digits_date(in, i);
        return 1;
    }
    int after = i + 1, day = english ? count_at(in, i, 1, 31) : 0, month = english ? month_at(in, i) : 0;
    if (day && strcmp(plain(in, after), "of") == 0)
        after++;
    if (day)
        month = after < in->n && is_near(in, after) ? month_at(in, after++) : 0;
    else if (month && is_near(in, after) && count_at(in, after, 1, 31))
        day = day_at(in, after++);
    if (!month)
        return 0;
    int year = year_at(in, after);
    *date = (struct fact){ .kind = FACT_DATE, .year = year, .month = month, .day = day };
    after += year > 0;
    return after > i + 1 ? after - i : 0; // a month alone is a name
}

/* ---- numbers ------------------------------------------------------------------------ */

/* "1,250" and "1,250,000.5", but not "12,5". */
static bool has_thousands(const char *s)
{
    size_t n = strspn(s, "0123456789");
    int groups = 0;

    for (s += n; n <= 3 && *s == ',' && strspn(s + 1, "0123456789") == 3; s += 4)
        groups++;
    return groups > 0 && (*s == '\0' || (*s == '.' && !s[1 + strspn(s + 1, "0123456789")]));
}

/* Writes the plain form: without thousands separators, leading zeros, and zeros after the point. */
static void put_number(char out[static sizeof((struct fact){ 0 }.number)], const char *s, bool negative)
{
    char text[sizeof((struct fact){ 0 }.number) - 2];
    size_t n = 0;
    bool thousands = has_thousands(s),
         comma = !thousands && strcspn(s, ".:/") == strlen(s) && strchr(s, ',') && strchr(s, ',') == strrchr(s, ',');

    while (s[0] == '0' && s[1] >= '0' && s[1] <= '9')
        s++;
    for (; *s && n < sizeof(text) - 1; s++)
        if (*s != ',' || !thousands)
            text[n++] = (char)(*s == ',' && comma ? '.' : *s);
    text[n] = '\0';
    const char *point = strchr(text, '.');
    if (point && text[strspn(text, "0123456789") + 1 + strspn(point + 1, "0123456789")] == '\0') {
        while (text[n - 1] == '0')
            text[--n] = '\0';
        if (text[n - 1] == '.')
            text[--n] = '\0';
    }
    snprintf(out, sizeof((struct fact){ 0 }.number), "%s%s", negative ? "-" : "", text);
}

static double scale_at(const struct finder *in, int i)
{
    for (size_t k = 0; is_joined(in, i) && k < COUNT(scales); k++)
        if (strcmp(plain(in, i), scales[k].word) == 0)
            return scales[k].times;
    return 0;
}

/* The entry of number_words[], or -1. */
static int number_word(const struct finder *in, int i)
{
    for (size_t k = 0; is_kind(in, i, WORD_PLAIN) && k < COUNT(number_words); k++)
        if (strcmp(plain(in, i), number_words[k].word) == 0)
            return (int)k;
    return -1;
}

/* "1. First item": the number of an item is no fact. */
static bool is_item(const struct finder *in, int i)
{
    const struct word *w = &in->word[i];

    return w->begins_line && w->is_marked && w->n <= 3 && i + 1 < in->n && !in->word[i + 1].begins_line;
}

/* A number in digits or words, without what follows. Its words, or 0. */
static int plain_number_at(const struct finder *in, int i, bool english, struct fact *number)
{
    *number = (struct fact){ .kind = FACT_NUMBER };
    if (is_kind(in, i, WORD_NUMBER)) {
        put_number(number->number, plain(in, i), in->word[i].is_negative);
        number->offered = is_item(in, i);
        return 1;
    }
    int word = english ? number_word(in, i) : -1, unit = -1;
    if (word < 0)
        return 0;
    int is = number_words[word].is;
    if (is >= 20 && is_joined(in, i + 1))
        unit = number_word(in, i + 1);
    bool tens = unit >= 0 && number_words[unit].is >= 1 && number_words[unit].is <= 9;
    snprintf(number->number, sizeof(number->number), "%d", is + (tens ? number_words[unit].is : 0));
    number->offered = number_words[word].offered;
    return 1 + tens;
}

/* The number of words of the number that begins at word i; 0: none. */
static int number_at(const struct finder *in, int i, bool english, struct fact *number)
{
    int n = plain_number_at(in, i, english, number);
    double scale;

    if (!n)
        return 0;
    for (; english && (scale = scale_at(in, i + n)) > 0 && !strpbrk(number->number, ":/"); n++) {
        snprintf(number->number, sizeof(number->number), "%.15g", strtod(number->number, NULL) * scale);
        number->offered = false;
    }
    bool percent = in->word[i + n - 1].is_percentage;
    if (!percent && is_joined(in, i + n) && strcmp(plain(in, i + n), "percent") == 0) {
        percent = true;
        n++;
    } else if (!percent && is_joined(in, i + n + 1) && !strcmp(plain(in, i + n), "per") &&
               !strcmp(plain(in, i + n + 1), "cent")) {
        percent = true;
        n += 2;
    }
    size_t length = strlen(number->number);
    if (percent && length + 1 < sizeof(number->number))
        memcpy(number->number + length, "%", 2);
    return n;
}

/* ---- names and negation ---------------------------------------------------------------- */

static bool begins_sentence(const struct finder *in, int i)
{
    return i == 0 || in->word[i - 1].sentence != in->word[i].sentence || is_item(in, i - 1);
}

/* Has the sentence that begins at i a word in lower case? */
static bool has_lower_case(const struct finder *in, int i)
{
    for (int k = i; k < in->n && in->word[k].sentence == in->word[i].sentence; k++)
        if (is_kind(in, k, WORD_PLAIN) && !in->word[k].capital)
            return true;
    return false;
}

/* The number of words of the name that begins at word i; 0: none. */
static int name_at(const struct finder *in, int i, struct fact *name)
{
    const struct word *w = &in->word[i];
    int n = 1;

    *name = (struct fact){ .kind = FACT_NAME };
    if (w->kind == WORD_CODE)
        return 1;
    if (w->kind != WORD_PLAIN || !w->capital || is_among(plain(in, i), common, COUNT(common)) ||
        is_among(plain(in, i), titles, COUNT(titles)))
        return 0;
    while (is_joined(in, i + n) && is_kind(in, i + n, WORD_PLAIN) && in->word[i + n].capital &&
           !is_among(plain(in, i + n), common, COUNT(common)))
        n++;
    bool only_begins = n == 1 && !w->all_capitals && begins_sentence(in, i) && has_lower_case(in, i);
    return only_begins ? 0 : n;
}

static bool is_negation(const struct finder *in, int i)
{
    const char *s = plain(in, i);
    size_t n = in->word[i].n;

    if (strcmp(s, "no") == 0 && in->word[i].is_marked && is_kind(in, i + 1, WORD_NUMBER))
        return false; // "No. 5"
    return is_among(s, negations, COUNT(negations)) || (n > 3 && strcmp(s + n - 3, "n't") == 0);
}

/* The first negation or "yes" is one fact: the answer denies, or it does not. */
static int note_negation(const struct finder *in, int i, struct err *err)
{
    struct facts *f = in->f;
    bool denies = is_negation(in, i), affirms = strcmp(plain(in, i), "yes") == 0, first = !f->denies && !f->affirms;

    f->denies |= denies;
    f->affirms |= affirms;
    if ((denies || affirms) && first && add(in, (struct fact){ .kind = FACT_NEGATION }, i, 1))
        return err_nomem(err);
    return 0;
}

/* ---- a text ------------------------------------------------------------------------------ */

static bool is_english(const struct words *w)
{
    int letters = 0, other_letters = 0, words = 0, with_other = 0, english = 0, not_english = 0;

    for (int i = 0; i < w->n; i++) {
        const char *s = word_plain(w, i);
        int other = 0;
        if (w->at[i].kind != WORD_PLAIN)
            continue;
        for (size_t k = 0; k < w->at[i].n; k++) {
            other +=
                (unsigned char)s[k] >= 0xd0; // the first byte of a letter beyond U+0400: Cyrillic and later scripts
            letters += ((unsigned char)s[k] & 0xc0) != 0x80;
        }
        other_letters += other;
        words++;
        with_other += strspn(s, "abcdefghijklmnopqrstuvwxyz'_") < w->at[i].n;
        english += is_among(s, common, COUNT(common));
        not_english += !w->at[i].capital && is_among(s, foreign, COUNT(foreign));
    }
    return 2 * other_letters <= letters && not_english <= english && !(words >= 8 && 4 * with_other >= words);
}

static int find_all(const struct finder *in, bool english, struct err *err)
{
    for (int i = 0, n = 0; i < in->n; i += n ? n : 1) {
        struct fact fact;
        n = date_at(in, i, english, &fact);
        if (!n)
            n = number_at(in, i, english, &fact);
        if (!n && english)
            n = name_at(in, i, &fact);
        if (n && add(in, fact, i, n))
            return err_nomem(err);
        if (!n && english && note_negation(in, i, err))
            return err->code;
    }
    return 0;
}

int facts_read(struct facts *f, const struct facts_of *of, struct err *err)
{
    *f = (struct facts){ 0 };
    if (words_read(&f->words, of->text, of->cut, err))
        return err->code;
    bool by_words = is_english(&f->words),
         english = of->language == FACTS_DETECT ? by_words : of->language == FACTS_ENGLISH;
    f->language = english ? FACTS_ENGLISH : FACTS_OTHER;
    f->conduct = conduct_read(of->text, of->cut, &f->words, by_words);
    int code = find_all(&(struct finder){ f, f->words.at, f->words.n }, english, err);
    if (code)
        facts_release(f);
    return code;
}

void facts_release(struct facts *f)
{
    words_release(&f->words);
    free(f->found.at);
    *f = (struct facts){ 0 };
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* A half text agrees with those that begin with it. */
static bool agree(const char *a, bool a_half, const char *b, bool b_half)
{
    size_t in_a = strlen(a), in_b = strlen(b);

    return strcmp(a, b) == 0 || (a_half && in_a < in_b && memcmp(a, b, in_a) == 0) ||
           (b_half && in_b < in_a && memcmp(a, b, in_b) == 0);
}

/* Is a number one of the date's parts? */
static bool is_part(const struct fact *number, const struct fact *date)
{
    const int part[] = { date->year, date->month, date->day };
    char text[16];

    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "%d", part[i]);
        if (part[i] && agree(number->number, number->half, text, false))
            return true;
    }
    return false;
}

/* Has `b` the parts of date `a`? A date at the end of a cut text may lack parts. */
static bool same_date(const struct fact *a, const struct fact *b)
{
    const int want[] = { a->year, a->month, a->day }, is[] = { b->year, b->month, b->day };

    for (int i = 0; i < 3; i++)
        if (want[i] && want[i] != is[i] && !(b->half && !is[i]))
            return false;
    return true;
}

/* Are the name's words somewhere in the answer, one after another? The last word of a cut answer may be half a name, or
 * the rest of the name may be missing, if it has a capital. */
static bool has_name(const struct facts *answer, const struct facts *reference, const struct fact *name)
{
    const struct words *w = &answer->words;
    int half = w->cut && w->n > 0 && w->at[w->n - 1].capital ? w->n - 1 : -1;

    for (int from = 0; from < w->n; from++) {
        int k = 0;
        while (k < name->n_words && from + k < w->n &&
               agree(word_plain(&reference->words, name->word + k), name->half && k == name->n_words - 1,
                     word_plain(w, from + k), from + k == half))
            k++;
        if (k == name->n_words || (k > 0 && from + k - 1 == half))
            return true;
    }
    return false;
}

bool facts_has(const struct facts *answer, const struct facts *reference, const struct fact *fact)
{
    if (fact->kind == FACT_NAME)
        return has_name(answer, reference, fact);
    if (fact->kind == FACT_NEGATION)
        return answer->denies == reference->denies;
    for (int i = 0; i < answer->found.n; i++) {
        const struct fact *is = &answer->found.at[i];
        if (fact->kind == FACT_NUMBER && is->kind == FACT_NUMBER &&
            agree(fact->number, fact->half, is->number, is->half))
            return true;
        if (is->kind == FACT_DATE && (fact->kind == FACT_NUMBER ? is_part(fact, is) : same_date(fact, is)))
            return true;
    }
    return false;
}

/* Did the reference say the fact before? */
static bool is_repeated(const struct facts *f, int i)
{
    const struct fact *fact = &f->found.at[i];

    for (int k = 0; k < i; k++) {
        const struct fact *other = &f->found.at[k];
        if (other->kind != fact->kind || other->offered)
            continue;
        bool same = fact->kind == FACT_NUMBER ? strcmp(fact->number, other->number) == 0
                    : fact->kind == FACT_DATE
                        ? fact->year == other->year && fact->month == other->month && fact->day == other->day
                        : fact->n_words == other->n_words;
        for (int n = 0; same && fact->kind == FACT_NAME && n < fact->n_words; n++)
            same = strcmp(word_plain(&f->words, fact->word + n), word_plain(&f->words, other->word + n)) == 0;
        if (same)
            return true;
    }
    return false;
}

int facts_kept(const struct facts *reference, const struct facts *answer, double *share, struct err *err)
{
    size_t n = (size_t)reference->found.n;
    int facts = 0, kept = 0;

    *share = (double)NAN;
    if (metric_check_steps(n, n + (size_t)answer->words.n, err))
        return err->code;
    for (int i = 0; i < reference->found.n; i++) {
        const struct fact *fact = &reference->found.at[i];
        if (fact->offered || is_repeated(reference, i))
            continue;
        facts++;
        kept += facts_has(answer, reference, fact);
    }
    facts += answer->denies && !reference->denies && !reference->affirms;
    conduct_compare(&reference->conduct, &answer->conduct, &facts, &kept);
    if (facts)
        *share = (double)kept / facts;
    return 0;
}

/* words.c - one pass over the text. A word is a run of letters, marks and digits, with the signs that may stand inside
 * one (inner_sign()). */
#include "profiler/score/words.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* A character and its length; a malformed byte is no letter. */
struct point {
    uint32_t c;
    size_t n; // 0: the end
};

struct reader {
    struct words *w;
    const char *text;
    size_t n, at;
    int sentence;
    bool new_line;
};

static struct point point_at(const struct reader *r, size_t at)
{
    struct point p = { 0 };

    if (at >= r->n)
        return p;
    int n = utf8_decode(r->text + at, r->n - at, &p.c);
    p.n = n > 0 ? (size_t)n : 1;
    p.c = n > 0 ? p.c : 0xfffd;
    return p;
}

/* The value of a digit of ASCII, Arabic, Persian, Devanagari or of full width; or -1. */
static int digit_of(uint32_t c)
{
    static const uint32_t zero[] = { '0', 0x660, 0x6f0, 0x966, 0xff10 };

    for (size_t i = 0; i < sizeof(zero) / sizeof(*zero); i++)
        if (c >= zero[i] && c < zero[i] + 10)
            return (int)(c - zero[i]);
    return -1;
}

static bool is_digit(struct point p)
{
    return p.n && digit_of(p.c) >= 0;
}

/* A letter, a mark on one, or a number that is no digit. */
static bool is_letter(struct point p)
{
    utf8proc_category_t k = p.n ? utf8proc_category((utf8proc_int32_t)p.c) : UTF8PROC_CATEGORY_CN;

    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO && digit_of(p.c) < 0);
}

/* A letter of a script without capitals, such as Chinese or Arabic: it makes no word with digits. */
static bool has_no_case(struct point p)
{
    return p.n && utf8proc_category((utf8proc_int32_t)p.c) == UTF8PROC_CATEGORY_LO;
}

static bool is_upper(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);

    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LT;
}

static bool is_apostrophe(uint32_t c)
{
    return c == '\'' || c == 0x2019;
}

static bool is_blank(struct point p)
{
    return p.n && utf8_is_space(p.c);
}

/* ---- a word ----------------------------------------------------------------- */

/* What a word has. */
struct seen {
    int letters, capitals, digits;
    bool starts_with_digit, letter_between; // letter_between: a digit follows a letter
    bool dots;                              // between single capitals: "U.S."
    struct point last;
};

static void note(struct seen *seen, struct point p)
{
    bool digit = is_digit(p);

    seen->starts_with_digit |= digit && !seen->letters && !seen->digits;
    seen->letter_between |= digit && seen->letters;
    seen->digits += digit;
    seen->letters += !digit;
    seen->capitals += !digit && is_upper(p.c);
    seen->last = p;
}

/* May the sign at `at` stand inside the word: is it between two digits of a number, letters as in "don't", or capitals
 * as in "U.S."? */
static bool inner_sign(const struct reader *r, const struct seen *seen, size_t at)
{
    struct point sign = point_at(r, at), next = point_at(r, at + sign.n);

    if (!sign.n)
        return false;
    if (is_digit(seen->last))
        return sign.c < 128 && strchr(".,:/", (int)sign.c) && seen->letters == 0 && is_digit(next);
    if (is_apostrophe(sign.c) || sign.c == '_')
        return is_letter(next);
    return sign.c == '.' && seen->digits == 0 && seen->letters == seen->capitals &&
           (seen->letters == 1 || seen->dots) && is_letter(next) && is_upper(next.c) &&
           !is_letter(point_at(r, at + sign.n + next.n));
}

/* The end of the word at `at`. */
static size_t word_end(const struct reader *r, size_t at, struct seen *seen)
{
    for (struct point p; p = point_at(r, at), p.n;) {
        if ((is_digit(p) && has_no_case(seen->last)) || (is_digit(seen->last) && has_no_case(p)))
            break;
        if (is_letter(p) || is_digit(p)) {
            note(seen, p);
        } else if (inner_sign(r, seen, at)) {
            seen->dots |= p.c == '.' && seen->letters;
        } else {
            break;
        }
        at += p.n;
    }
    return at;
}

static int small_number(const char *s, size_t n)
{
    int v = 0;

    for (size_t i = 0; i < n && v < 10000; i++)
        v = 10 * v + (s[i] - '0');
    return v;
}

/* The bytes of a date in digits at `at`, or 0. */
static size_t date_bytes(const struct reader *r, size_t at)
{
    static const char digits[] = "0123456789";
    const char *s = r->text + at;
    size_t a = strspn(s, digits), b = a && s[a] ? strspn(s + a + 1, digits) : 0;
    size_t c = b && s[a + 1 + b] == s[a] ? strspn(s + a + 1 + b + 1, digits) : 0;
    bool iso = a == 4 && b == 2 && (s[a] == '-' || (s[a] == '/' && c)) && c <= 2;
    bool german = a <= 2 && b <= 2 && c == 4 && s[a] == '.';
    int month = b ? small_number(s + a + 1, b) : 0;

    if (!(iso || german) || month < 1 || month > 12)
        return 0;
    return a + 1 + b + (c ? 1 + c : 0);
}

/* Writes the plain form of the bytes at..end of a word. */
static void put_plain(const struct reader *r, struct word *word, const struct seen *seen, size_t end)
{
    struct buf *plain = &r->w->plain;

    word->plain = plain->n;
    for (size_t at = word->at; at < end;) {
        struct point p = point_at(r, at);
        char bytes[4];
        if (word->kind == WORD_NUMBER && is_letter(p))
            break;
        if (is_digit(p))
            buf_addc(plain, (char)('0' + digit_of(p.c)));
        else if (is_apostrophe(p.c))
            buf_addc(plain, '\'');
        else if (!(p.c == '.' && seen->dots))
            buf_add(plain, bytes, (size_t)utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)p.c), bytes));
        at += p.n;
    }
    word->n = plain->n - word->plain;
    if (word->n > 2 && plain->at && memcmp(plain->at + plain->n - 2, "'s", 2) == 0) {
        plain->n -= 2;
        word->n -= 2;
    }
    buf_addc(plain, '\0');
}

/* ---- between words ------------------------------------------------------------ */

/* A dot after "J." or "Dr." ends no sentence. */
static bool is_short_form(const struct words *w, int i)
{
    static const char *const titles[] = { "mr", "mrs", "ms", "dr", "prof", "st", "no", "vs" };
    const struct word *word = &w->at[i];

    if (word->kind == WORD_PLAIN && word->all_capitals && word->bytes != word->n)
        return true; // "U.S."
    for (size_t k = 0; k < sizeof(titles) / sizeof(*titles); k++)
        if (strcmp(word_plain(w, i), titles[k]) == 0)
            return true;
    return word->kind == WORD_PLAIN && word->capital && word->bytes == 1 && word_plain(w, i)[0] != 'i';
}

static bool ends_sentence(const struct reader *r, size_t at, struct point p)
{
    struct point next = point_at(r, at + p.n);

    switch (p.c) {
    case '!':
    case '?':
    case ':':
    case ';':
    case '\n':
    case 0x3002: // full stop, exclamation and question mark of Chinese and Japanese
    case 0xff01:
    case 0xff1f: return true;
    case '.': return (!next.n || !is_letter(next)) && !(r->w->n && is_short_form(r->w, r->w->n - 1));
    default: return false;
    }
}

/* Moves to the next word. Returns whether only a blank, a hyphen, or the dot and blank of "J. " was in between. */
static bool skip_to_word(struct reader *r)
{
    size_t from = r->at;
    int signs = 0;
    bool joining = true;

    for (struct point p; p = point_at(r, r->at), p.n && !is_letter(p) && !is_digit(p); r->at += p.n) {
        if (ends_sentence(r, r->at, p))
            r->sentence++;
        r->new_line |= p.c == '\n';
        joining = joining && (is_blank(p) || p.c == '-' || p.c == 0x2010 || p.c == 0x2011 ||
                              (p.c == '.' && r->at == from && r->w->n && is_short_form(r->w, r->w->n - 1)));
        signs += p.c != '.';
    }
    return joining && signs == 1 && !r->new_line;
}

/* Is there a minus before the word: a sign with neither letter nor digit before it? */
static bool is_negative(const struct reader *r, size_t at)
{
    const char *s = r->text;
    size_t sign = at >= 1 && s[at - 1] == '-' ? 1 : at >= 3 && memcmp(s + at - 3, "\xe2\x88\x92", 3) == 0 ? 3 : 0;

    return sign && (at == sign || strchr(" \n\t(", s[at - sign - 1]));
}

static bool is_percentage(const struct reader *r, size_t at)
{
    struct point p = point_at(r, at);

    if (is_blank(p))
        p = point_at(r, at + p.n);
    return p.n && (p.c == '%' || p.c == 0x66a || p.c == 0xff05);
}

static int add_word(struct reader *r, bool is_joined, struct err *err)
{
    struct word word = { .at = r->at, .is_joined = is_joined, .begins_line = r->new_line, .sentence = r->sentence };
    struct seen seen = { 0 };
    size_t date = date_bytes(r, r->at), end = word_end(r, r->at, &seen);

    if (date) {
        word.kind = WORD_DATE;
        end = r->at + date;
    } else if (seen.digits) {
        word.kind = seen.starts_with_digit && !seen.letter_between ? WORD_NUMBER : WORD_CODE;
    }
    word.capital = seen.capitals > 0;
    word.all_capitals = seen.letters > 1 && seen.capitals == seen.letters;
    word.bytes = end - r->at;
    word.is_negative = is_negative(r, r->at);
    word.is_percentage = is_percentage(r, end);
    word.is_marked = end < r->n && strchr(".)", r->text[end]);
    put_plain(r, &word, &seen, end);
    r->at = end;
    r->new_line = false;
    return ARRAY_PUSH(r->w, word) || buf_failed(&r->w->plain) ? err_nomem(err) : 0;
}

int words_read(struct words *w, const char *text, bool cut, struct err *err)
{
    struct reader r = { .w = w, .text = text, .n = strlen(text), .new_line = true };
    int code = 0;

    *w = (struct words){ .cut = cut };
    while (!code) {
        bool is_joined = skip_to_word(&r);
        if (r.at >= r.n)
            break;
        code = add_word(&r, is_joined, err);
    }
    if (code)
        words_release(w);
    return code;
}

void words_release(struct words *w)
{
    free(w->at);
    buf_release(&w->plain);
    *w = (struct words){ 0 };
}

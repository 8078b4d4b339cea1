/* words.h - a text as words and numbers, with what surrounds them, for profiler/score/facts.h. */
#ifndef EVP_WORDS_H
#define EVP_WORDS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum word_kind {
    WORD_PLAIN,  // letters, with apostrophes between them; "U.S." is one word
    WORD_NUMBER, // digits, with . , : / between them; letters after them are left out: "10GB", "3rd"
    WORD_DATE,   // 2026-02-03, 2026/02/03, 2026-02, 3.2.2026
    WORD_CODE,   // letters and digits: "H100"
};

struct word {
    enum word_kind kind;
    size_t at, bytes;   // where it is in the text
    size_t plain, n;    // its plain form in words.plain: lower case, ASCII digits, without "'s" and inner dots
    bool capital;       // it has a capital letter
    bool all_capitals;  // two or more letters, all of them capital
    bool is_joined;     // only a blank or a hyphen is between it and the word before
    bool begins_line;   // it is the first in its line
    bool is_marked;     // "." or ")" follows
    bool is_negative;   // a number with a minus
    bool is_percentage; // "%" follows
    int sentence;       // its sentence's number
};

struct words {
    struct word *at;
    int n, cap;
    struct buf plain; // the plain forms, each with a NUL
    bool cut;         // the text ends within or right after the last word, and was cut there
};

/* Reads a text in UTF-8. cut: its end may be missing. ERR_NOMEM; words_release() frees. */
int words_read(struct words *w, const char *text, bool cut, struct err *err) MUST_CHECK;
void words_release(struct words *w); // zeroed is fine

/* The plain form of a word. */
static inline const char *word_plain(const struct words *w, int i)
{
    return w->plain.at + w->at[i].plain;
}

#endif

/* near.c - Levenshtein's distance with one row of the table, for words of at most WORD_MAX bytes. */
#include "base/near.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 63, PREFIX_MIN = 2, WHOLE_MIN = 4 }; /* bytes */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[WORD_MAX + 1];

    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t before = row[0]; // the cell above and to the left
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j];
            size_t replaced = before + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            row[j] = smaller(replaced, smaller(above, row[j - 1]) + 1);
            before = above;
        }
    }
    return row[n_b];
}

const char *near_word(const char *text, size_t n, const char *const *words, size_t n_words)
{
    const char *best = NULL;
    size_t nearest = (n + 1) / 3 + 1;

    if (n == 0 || n > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n_words; i++) {
        size_t length = words[i] ? strlen(words[i]) : 0;
        if (length == 0 || length > WORD_MAX)
            continue;
        if (n >= PREFIX_MIN && length >= n && strncasecmp(words[i], text, n) == 0)
            return words[i];
        if (length >= WHOLE_MIN && n > length && strncasecmp(words[i], text, length) == 0)
            return words[i];
        size_t d = distance(text, n, words[i], length);
        if (d < nearest) {
            nearest = d;
            best = words[i];
        }
    }
    return best;
}

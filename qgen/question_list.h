/* question_list.h - the questions about one context: distinct, of sane length, each with its position in the text.
 *
 * A zeroed struct is an empty list.
 */
#ifndef EVP_QUESTION_LIST_H
#define EVP_QUESTION_LIST_H

#include "base/err.h"
#include "base/map.h"

#include <stddef.h>

struct listed_question {
    char *text;
    size_t position; // in the context, in bytes, or any other number to sort by
};

struct question_list {
    struct listed_question *at;
    int n, cap;
    struct map seen; // the keys of the questions, without case, blanks and punctuation; also those of removed ones
};

enum { MIN_QUESTION = 3, MAX_QUESTION = 1000 }; /* bytes; a longer "question" is prose */

/* Adds a copy with white space collapsed to single blanks. Returns 0 and leaves the list as it is when the text is too
 * short, too long, or differs from an earlier question only in case, blanks and punctuation. */
int question_list_add(struct question_list *list, const char *text, size_t n, size_t position,
                      struct err *err) MUST_CHECK;

/* The same for a question that came with a dataset: as it is, line ends and all, and however long. 0 also when the list
 * has it already, letter by letter, or when it is empty. */
int question_list_add_given(struct question_list *list, const char *text, size_t position, struct err *err) MUST_CHECK;

void question_list_sort(struct question_list *list);       // by position; questions of one position keep their order
void question_list_cut(struct question_list *list, int n); // keeps the first n
void question_list_release(struct question_list *list);

/* Adds n bytes with white space collapsed to single blanks and removed at both ends. */
struct buf;
void text_flatten(struct buf *out, const char *text, size_t n);

#endif

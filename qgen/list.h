/* list.h - the questions about one context: distinct, of sane length, each with its place in the text.
 *
 * A zeroed struct is an empty list.
 */
#ifndef EVP_LIST_H
#define EVP_LIST_H

#include "base/err.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>

struct asked {
    char *text;
    size_t place; // byte of the context it was drawn from, or any other number to sort by
};

struct asked_list {
    struct asked *at;
    int n, room;
    struct map seen; // what was added, without case, blanks and punctuation
};

enum { QUESTION_LEAST = 3, QUESTION_MOST = 1000 }; /* bytes; a longer "question" is prose around none */

/* Adds a copy with every run of white space made one blank. *added (may be NULL) is false, and the list unchanged, when
 * the text is too short, too long, or one that differs from an earlier one only in case, blanks and punctuation. */
int asked_add(struct asked_list *list, const char *text, size_t n, size_t place, bool *added,
              struct err *err) MUST_CHECK;

void asked_sort(struct asked_list *list);       // by place; equal places stay in order
void asked_cut(struct asked_list *list, int n); // keeps the first n
void asked_release(struct asked_list *list);

/* Adds n bytes with every run of white space made one blank, none at either end. */
struct buf;
void text_flatten(struct buf *out, const char *text, size_t n);

#endif

/* question_list.c - an array in order of arrival, and a set of keys: two wordings of one question have the same key. */
#include "qgen/question_list.h"

#include "base/array.h"
#include "base/buf.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void text_flatten(struct buf *out, const char *text, size_t n)
{
    size_t start = out->n;

    for (size_t i = 0; i < n; i++) {
        if (!isspace((unsigned char)text[i]))
            buf_addc(out, text[i]);
        else if (out->n > start && out->at[out->n - 1] != ' ')
            buf_addc(out, ' ');
    }
    if (out->n > start && out->at[out->n - 1] == ' ')
        out->at[--out->n] = '\0';
}

/* Two wordings of one question share letters and digits. Bytes of other scripts count as letters. */
static void add_key(struct buf *key, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || isalnum(c))
            buf_addc(key, (char)tolower(c));
    }
}

/* Moves the text out of *flat, if the list does not have the question yet. */
static int add_new(struct question_list *list, struct buf *flat, const struct buf *key, size_t position,
                   struct err *err)
{
    bool is_new;

    if (map_add(&list->seen, key->at, key->n, &is_new) == MAP_NOMEM)
        return err_nomem(err);
    if (!is_new)
        return 0;
    char *text = buf_take(flat);
    if (text && ARRAY_PUSH(list, (struct listed_question){ .text = text, .position = position }) == 0)
        return 0;
    free(text);
    return err_nomem(err);
}

int question_list_add(struct question_list *list, const char *text, size_t n, size_t position, struct err *err)
{
    struct buf flat = { 0 }, key = { 0 };
    int code = 0;

    text_flatten(&flat, text, n);
    add_key(&key, buf_str(&flat), flat.n);
    if (buf_failed(&flat) || buf_failed(&key))
        code = err_nomem(err);
    else if (flat.n >= MIN_QUESTION && flat.n <= MAX_QUESTION && key.n > 0)
        code = add_new(list, &flat, &key, position, err);
    buf_release(&flat);
    buf_release(&key);
    return code;
}

int question_list_add_given(struct question_list *list, const char *text, size_t position, struct err *err)
{
    struct buf given = { 0 };

    buf_adds(&given, text);
    int code = buf_failed(&given) ? err_nomem(err) : given.n ? add_new(list, &given, &given, position, err) : 0;
    buf_release(&given);
    return code;
}

/* Insertion sort: the lists are short and nearly sorted, and questions of equal position must keep their order. */
void question_list_sort(struct question_list *list)
{
    for (int i = 1; i < list->n; i++) {
        struct listed_question q = list->at[i];
        int j = i;
        for (; j > 0 && list->at[j - 1].position > q.position; j--)
            list->at[j] = list->at[j - 1];
        list->at[j] = q;
    }
}

void question_list_cut(struct question_list *list, int n)
{
    while (list->n > n)
        free(list->at[--list->n].text);
}

void question_list_release(struct question_list *list)
{
    question_list_cut(list, 0);
    free(list->at);
    map_release(&list->seen);
    *list = (struct question_list){ 0 };
}

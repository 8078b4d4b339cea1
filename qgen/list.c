#include "qgen/list.h"

#include "base/buf.h"

#include <ctype.h>
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

/* What two questions have in common that ask the same: letters and digits. Bytes of other scripts count as letters. */
static void add_key(struct buf *key, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || isalnum(c))
            buf_addc(key, (char)tolower(c));
    }
}

static int append(struct asked_list *list, char *text, size_t place, struct err *err)
{
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 16;
        struct asked *at = reallocarray(list->at, (size_t)room, sizeof(*at));
        if (!at)
            return err_nomem(err);
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = (struct asked){ .text = text, .place = place };
    return 0;
}

int asked_add(struct asked_list *list, const char *text, size_t n, size_t place, bool *added, struct err *err)
{
    struct buf flat = { 0 }, key = { 0 };
    bool new = false;
    int code = 0;

    text_flatten(&flat, text, n);
    add_key(&key, buf_str(&flat), flat.n);
    if (buf_failed(&flat) || buf_failed(&key))
        code = err_nomem(err);
    else if (flat.n >= QUESTION_LEAST && flat.n <= QUESTION_MOST && key.n > 0 &&
             map_add(&list->seen, key.at, key.n, &new) == MAP_NOMEM)
        code = err_nomem(err);
    char *copy = new && !code ? buf_take(&flat) : NULL;
    if (copy && append(list, copy, place, err)) {
        code = err->code;
        free(copy);
    }
    buf_release(&flat);
    buf_release(&key);
    if (added)
        *added = new && !code;
    return code;
}

/* Insertion sort: the lists are short, nearly sorted, and equal places must stay in order. */
void asked_sort(struct asked_list *list)
{
    for (int i = 1; i < list->n; i++) {
        struct asked a = list->at[i];
        int j = i;
        for (; j > 0 && list->at[j - 1].place > a.place; j--)
            list->at[j] = list->at[j - 1];
        list->at[j] = a;
    }
}

void asked_cut(struct asked_list *list, int n)
{
    while (list->n > n)
        free(list->at[--list->n].text);
}

void asked_release(struct asked_list *list)
{
    asked_cut(list, 0);
    free(list->at);
    map_release(&list->seen);
    *list = (struct asked_list){ 0 };
}

/* ids.c - what the embedder's tokenizer makes of texts, for the scripts beside it.
 *
 *     ids MODEL <TEXTS      TEXTS: each ends in a NUL; prints a line of ids for each, special tokens split off
 */
#include "base/buf.h"
#include "base/file.h"
#include "embed/wordpiece.h"

#include <stdio.h>
#include <string.h>

static int print_ids(const struct wordpiece *w, const struct buf *texts, struct err *err)
{
    struct tokens ids = { 0 };
    int code = 0;

    for (size_t at = 0; at < texts->n && !code; at += strlen(texts->at + at) + 1) {
        ids.n = 0;
        code = wordpiece_encode(w, texts->at + at, strlen(texts->at + at), &ids, err);
        for (int i = 0; i < ids.n; i++)
            printf(i ? " %d" : "%d", ids.at[i]);
        putchar('\n');
    }
    tokens_release(&ids);
    return code;
}

int main(int argc, char **argv)
{
    struct buf texts = { 0 };
    struct err err = { .msg = "usage: ids MODEL <TEXTS" };
    struct wordpiece *w = argc == 2 ? wordpiece_open(argv[1], &err) : NULL;
    int code = !w || file_read(&texts, "-", (size_t)1 << 30, &err) || print_ids(w, &texts, &err);

    if (code)
        fprintf(stderr, "ids: %s\n", err.msg);
    buf_release(&texts);
    wordpiece_close(w);
    return code;
}

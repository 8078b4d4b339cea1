/* tokenize MODEL TEXT TIMES - tokenises the file TEXT as one text, TIMES times on one thread, and prints the bytes per
 * second of the fastest time and the number of ids. */
#include "base/clock.h"
#include "base/file.h"
#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

static void must(int code, const struct err *err)
{
    if (!code)
        return;
    fprintf(stderr, "tokenize: %s\n", err->msg);
    exit(1);
}

int main(int argc, char **argv)
{
    struct err err;
    struct buf text = { 0 };
    double best = 0;
    int n = 0;

    if (argc != 4)
        return 2;
    struct model *m = model_open(argv[1], &err);
    must(!m, &err);
    struct tokenizer *t = tokenizer_open(m, &err);
    must(!t, &err);
    must(file_read(&text, argv[2], SIZE_MAX / 4, &err), &err);
    for (long i = 0; i < strtol(argv[3], NULL, 10); i++) {
        struct tokens ids = { 0 };
        double start = clock_now();
        must(tokenizer_encode(t, (struct text_view){ text.at, text.n }, SPECIAL_AS_TEXT, &ids, &err), &err);
        double rate = (double)text.n / (clock_now() - start);
        best = rate > best ? rate : best;
        n = ids.n;
        tokens_release(&ids);
    }
    printf("%.0f %d\n", best, n);
    buf_release(&text);
    tokenizer_free(t);
    model_close(m);
    return 0;
}

/* ruler - any text as the essays of RULER's tasks: the rows are made, and every needle is in one piece in a row. */
#include "datasets/ruler.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int64_t quarter(void *arg, const char *text, struct err *e)
{
    (void)arg;
    (void)e;
    return (int64_t)strlen(text) / 4;
}

static void note(void *arg, enum import_note what, const char *sentence)
{
    (void)arg;
    (void)what;
    (void)sentence;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char task[] = "niah_multikey_1", needle[] = "One of the special magic numbers for ";
    struct import im = { .note = note };
    struct buf text = { 0 };
    struct err e;

    buf_add(&text, data, n);
    struct ruler r = { .tokens = 800, .rows = 2, .seed = n, .essay = buf_str(&text), .count = quarter };
    if (map_add(&im.wanted, task, strlen(task), NULL) < 0)
        abort();
    (void)!ruler_make(&im, &r, &e); // words of kilobytes do not fit
    for (int i = 0; i < im.contexts.n; i++) {
        int found = 0;
        for (const char *at = im.contexts.at[i].text; (at = strstr(at, needle)) != NULL; at++)
            found++;
        if (found < 4)
            abort();
    }
    import_release(&im);
    buf_release(&text);
    return 0;
}

/* Any bytes as two answers, with a NUL between them: every fact lies within its text, a share is from 0 to 1, and an
 * answer keeps all its own facts. The first byte says whether they are cut, and their language. */
#include "profiler/score/facts.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_places(const struct facts *f, size_t n)
{
    for (int i = 0; i < f->found.n; i++)
        if (f->found.at[i].bytes == 0 || f->found.at[i].at >= n || f->found.at[i].bytes > n - f->found.at[i].at)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct facts reference = { 0 }, answer = { 0 };
    struct err err;
    double share;
    char *text = n ? malloc(n + 2) : NULL;

    if (!text)
        return 0;
    memcpy(text, data, n);
    memset(text + n, 0, 2);
    const char *first = text + 1, *second = first + strlen(first) + 1;
    bool cut = *data & 1;
    if (facts_read(&reference, &(struct facts_of){ first, cut, *data >> 1 & 1 }, &err) == 0 &&
        facts_read(&answer, &(struct facts_of){ second, cut, reference.language }, &err) == 0) {
        check_places(&reference, strlen(first));
        check_places(&answer, strlen(second));
        if (facts_kept(&reference, &answer, &share, &err) == 0 && !isnan(share) && !(share >= 0 && share <= 1))
            abort();
        if (facts_kept(&reference, &reference, &share, &err) == 0 && !isnan(share) && share != 1)
            abort();
    }
    facts_release(&reference);
    facts_release(&answer);
    free(text);
    return 0;
}

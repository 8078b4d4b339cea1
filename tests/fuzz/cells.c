/* cells.c - any bytes as a list of cells: refused with a sentence, or every cell is of a known question and config. */
#include "formats/cells.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char a[] = "a", b[] = "b", q[] = "q", r[] = "r", s[] = "s";
static struct context context[] = { { .id = a }, { .id = b } };
static struct question question[] = { { .id = q, .context = a, .split = SPLIT_TRAIN },
                                      { .id = r, .context = a, .split = SPLIT_TEST },
                                      { .id = s, .context = b, .split = SPLIT_TEST } };

static void add(struct contexts *contexts, struct questions *questions)
{
    contexts->at = context;
    contexts->n = 2;
    questions->at = question;
    questions->n = 3;
    for (int i = 0; i < 2; i++)
        if (map_add(&contexts->ids, context[i].id, 1, NULL) != i)
            abort();
    for (int i = 0; i < 3; i++)
        if (map_add(&questions->ids, question[i].id, 1, NULL) != i)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rows_bytes bytes = { "input", (const char *)data, n };
    struct contexts contexts = { 0 };
    struct questions questions = { 0 };
    struct cells c;
    struct err err;

    add(&contexts, &questions);
    if (!cells_read_bytes(&c, &bytes, &contexts, &questions, &err)) {
        int wanted = 0;
        for (int i = 0; i < 3; i++)
            for (int v = 0; v < c.configs.n; v++)
                wanted += cells_want(&c, i, v);
        if (wanted != c.wanted.n || c.configs.n < 1 || c.contexts.n > 2)
            abort();
        free(cells_configs(&c));
        cells_release(&c);
    }
    map_release(&contexts.ids);
    map_release(&questions.ids);
    return 0;
}

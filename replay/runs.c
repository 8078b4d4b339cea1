/* runs.c - a block begins a run where prompts begin or branch, and after a block with which a prompt ends. */
#include "replay/runs.h"

#include <stdbool.h>
#include <stdlib.h>

enum { ENDS = 1, HAS_CHILD = 2, SPLITS = 4 };

int runs_make(struct runs *runs, const int32_t *parent, uint8_t *ends, int n_blocks, struct err *err)
{
    *runs = (struct runs){ .of = malloc(((size_t)n_blocks + 1) * sizeof(*runs->of)) };
    if (!runs->of)
        return err_nomem(err);
    for (int i = 0; i < n_blocks; i++)
        ends[i] = ends[i] ? ENDS : 0;
    for (int i = 0; i < n_blocks; i++)
        if (parent[i] >= 0)
            ends[parent[i]] |= ends[parent[i]] & HAS_CHILD ? SPLITS : HAS_CHILD;
    for (int i = 0; i < n_blocks; i++) {
        bool goes_on = parent[i] >= 0 && !(ends[parent[i]] & (ENDS | SPLITS));
        runs->of[i] = goes_on ? runs->of[parent[i]] : runs->n++;
    }
    runs->at = calloc((size_t)runs->n + 1, sizeof(*runs->at));
    if (!runs->at) {
        runs_release(runs);
        return err_nomem(err);
    }
    for (int i = 0; i < n_blocks; i++)
        if (runs->at[runs->of[i]].n++ == 0)
            runs->at[runs->of[i]].parent = parent[i] < 0 ? -1 : runs->of[parent[i]];
    return 0;
}

void runs_release(struct runs *runs)
{
    free(runs->at);
    free(runs->of);
    *runs = (struct runs){ 0 };
}

/* show_near.h - between show_find.c and show_near.c. */
#ifndef EVP_SHOW_NEAR_H
#define EVP_SHOW_NEAR_H

#include "engine/tokens/tokenizer.h"
#include "loader/store/index.h"
#include "show/show_sheet.h"

struct show_near {
    const struct tokenizer *tokenizer;
    const int32_t *id; // (n) the prompt
    int n, n_placed;   // of these are placed
    const struct index_view *view;
    char *const *path; // (n_views) of the folders
    int n_views;
};

/* Adds the placed context that has most tokens in common with the prompt, if more than are placed, and the words around
 * the first token that differs. */
int show_near(struct sheet *s, const struct show_near *in, struct err *err) MUST_CHECK;

#endif

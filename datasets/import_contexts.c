/* import_contexts.c - the contexts imported so far: distinct texts with distinct ids. A second row with the same text
 * gives its questions to the first; another text with a known id is left out.
 */
#include "datasets/import_internal.h"

#include "base/array.h"
#include "base/digest.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct import *im, const char *dataset)
{
    return im->wanted.n == 0 || map_find(&im->wanted, dataset, strlen(dataset)) >= 0;
}

int import_leave_out(struct import *im, const struct err *why)
{
    im->n_left_out++;
    im->note(im->arg, IMPORT_ROW_LEFT_OUT, why->msg);
    return 0;
}

static int append(struct import *im, struct context *c, const char sha[DIGEST_HEX], struct err *err)
{
    struct contexts *list = &im->contexts;

    if (ARRAY_GROW(list, list->n + 1) || map_add(&list->ids, c->id, strlen(c->id), NULL) < 0 ||
        map_add(&im->texts, sha, strlen(sha), NULL) < 0)
        return err_nomem(err);
    list->at[list->n++] = *c;
    *c = (struct context){ 0 };
    return 0;
}

static int add(struct import *im, struct context *c, const char *label, struct err *err)
{
    char sha[DIGEST_HEX];
    size_t n = strlen(c->text);

    if (map_add(&im->datasets, c->dataset, strlen(c->dataset), NULL) < 0)
        return err_nomem(err);
    if (!is_wanted(im, c->dataset))
        return 0;
    if (field_check_text("id", c->id, CONTEXT_ID, err)) {
        err_wrap(err, "%s", label);
        return import_leave_out(im, err);
    }
    if (n > CONTEXT_MAX_TEXT) {
        err_set(err, ERR_FORMAT, "%s: the text of '%s' is longer than %d MiB", label, c->id, CONTEXT_MAX_TEXT >> 20);
        return import_leave_out(im, err);
    }
    if (digest_sha256(c->text, n, sha, err))
        return err->code;
    int same = map_find(&im->texts, sha, strlen(sha));
    if (same >= 0)
        return context_unite(&im->contexts.at[same], c, err);
    if (map_find(&im->contexts.ids, c->id, strlen(c->id)) < 0)
        return append(im, c, sha, err);
    err_set(err, ERR_FORMAT, "%s: id '%s' already belongs to another text", label, c->id);
    return import_leave_out(im, err);
}

int import_add(struct import *im, struct context *c, const char *label, struct err *err)
{
    int code = add(im, c, label, err);

    context_release(c);
    return code;
}

void import_release(struct import *im)
{
    contexts_release(&im->contexts);
    map_release(&im->wanted);
    map_release(&im->datasets);
    map_release(&im->texts);
    map_release(&im->unread);
    for (int i = 0; i < im->headers.n; i++)
        json_free(im->headers.at[i]);
    free(im->headers.at);
    *im = (struct import){ 0 };
}

/* show_near.c - a prompt that is placed in part or not at all: which placed context comes nearest, and where they part.
 * The tokens of a context are in its payload. */
#include "show/show_near.h"

#include "base/file.h"
#include "formats/payload.h"
#include "formats/stored.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12 }; // tokens on both sides of the place

struct near {
    int view; // -1: none
    char file[OBJECT_FILE];
    int n_same, n_tokens;
};

static int open_payload(struct payload *p, const struct show_near *in, const struct near *at, struct err *err)
{
    char *path = file_join(in->path[at->view], at->file);
    int code = path ? payload_open(p, path, err) : err_nomem(err);

    free(path);
    return code;
}

static int32_t token(const struct payload *p, int i)
{
    int32_t id;

    memcpy(&id, (const char *)p->tokens->at + (size_t)i * sizeof(id), sizeof(id));
    return id;
}

/* Compares one payload; one that cannot be read is not near. */
static void compare(const struct show_near *in, struct near *at, struct near *best)
{
    struct payload p;
    struct err ignored;
    int n = 0;

    if (open_payload(&p, in, at, &ignored))
        return;
    while (n < in->n && n < p.n_tokens && token(&p, n) == in->id[n])
        n++;
    at->n_same = n;
    at->n_tokens = p.n_tokens;
    payload_close(&p);
    if (best->view < 0 || n > best->n_same || (n == best->n_same && at->n_tokens < best->n_tokens))
        *best = *at;
}

static struct near find_near(const struct show_near *in)
{
    struct near best = { .view = -1 };

    for (int v = 0; v < in->n_views; v++) {
        const struct index *ix = in->view[v].index;
        struct index_key own = { 0 };
        index_key_in(&own, in->view[v].name_space);
        for (size_t i = 0; i < ix->n && in->view[v].name_space >= 0; i++) {
            const struct index_record *r = &ix->record[i];
            struct near at = { .view = v };
            if (index_is_part(&r->key) || memcmp(r->key.name_space, own.name_space, sizeof(own.name_space)) != 0)
                continue;
            object_file(r->object, at.file);
            compare(in, &at, &best);
        }
    }
    return best;
}

struct some {
    const char *name;
    const int32_t *id;
    int n;
};

static int put_words(struct sheet *s, const struct tokenizer *t, const struct some *words, struct err *err)
{
    struct buf text = { 0 };
    int code = tokenizer_decode(t, words->id, words->n, &text, err);

    if (!code)
        sheet_text(s, words->name, buf_str(&text));
    buf_release(&text);
    return code;
}

static int put_place(struct sheet *s, const struct show_near *in, const struct near *at, struct err *err)
{
    int from = at->n_same > SHOWN ? at->n_same - SHOWN : 0;
    int32_t placed[SHOWN];
    struct some some[] = { { "both", in->id + from, at->n_same - from },
                           { "then_the_prompt", in->id + at->n_same, 0 },
                           { "then_the_placed", placed, 0 } };
    struct payload p;
    int code = 0;

    some[1].n = in->n - at->n_same < SHOWN ? in->n - at->n_same : SHOWN;
    if (open_payload(&p, in, at, err))
        return err->code;
    while (some[2].n < SHOWN && at->n_same + some[2].n < p.n_tokens) {
        placed[some[2].n] = token(&p, at->n_same + some[2].n);
        some[2].n++;
    }
    payload_close(&p);
    for (int i = 0; i < 3 && !code; i++)
        code = put_words(s, in->tokenizer, &some[i], err);
    return code;
}

int show_near(struct sheet *s, const struct show_near *in, struct err *err)
{
    struct near best = find_near(in);

    if (best.view < 0 || best.n_same <= in->n_placed)
        return 0;
    sheet_text(s, "nearest_folder", in->path[best.view]);
    sheet_text(s, "nearest_payload", best.file);
    sheet_int(s, "nearest_tokens", best.n_tokens);
    sheet_int(s, "same_tokens", best.n_same);
    return best.n_same < in->n && best.n_same < best.n_tokens ? put_place(s, in, &best, err) : 0;
}

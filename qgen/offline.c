#include "qgen/offline.h"

#include "qgen/source.h"

#include <stdlib.h>
#include <string.h>

/* What the parts of a text ask for in turn: the first of these kinds that any piece of the part supports. */
static const enum source_kind turn[][SOURCE_KINDS] = {
    { SOURCE_REPEAT, SOURCE_AFTER, SOURCE_NEXT },
    { SOURCE_NUMBER, SOURCE_NAME, SOURCE_REPEAT, SOURCE_AFTER, SOURCE_NEXT },
    { SOURCE_AFTER, SOURCE_REPEAT, SOURCE_NEXT },
    { SOURCE_MEANING, SOURCE_SECTION, SOURCE_REPEAT, SOURCE_AFTER, SOURCE_NEXT },
    { SOURCE_REPEAT, SOURCE_AFTER, SOURCE_NEXT },
    { SOURCE_NAME, SOURCE_NUMBER, SOURCE_REPEAT, SOURCE_AFTER, SOURCE_NEXT },
};
enum { N_TURNS = sizeof(turn) / sizeof(*turn) };

struct drawing {
    struct source *source;
    struct asked_list *list;
    struct rng *rng;
    int *order;  // (n pieces) indices, shuffled within each part
    bool *taken; // (n pieces)
};

/* Asks about piece i if it supports the kind; *asked tells whether a new question came of it. */
static int try_piece(struct drawing *d, enum source_kind kind, int i, bool *asked, struct err *err)
{
    struct buf text = { 0 };
    int code = 0;

    *asked = false;
    if (!d->taken[i] && source_question(d->source, kind, i, &text))
        code = asked_add(d->list, buf_str(&text), text.n, d->source->pieces.at[i].at, asked, err);
    if (buf_failed(&text) && !code)
        code = err_nomem(err);
    buf_release(&text);
    d->taken[i] |= *asked;
    return code;
}

static int try_kind(struct drawing *d, enum source_kind kind, int from, int to, bool *asked, struct err *err)
{
    *asked = false;
    for (int i = from; i < to && !*asked; i++)
        if (try_piece(d, kind, d->order[i], asked, err))
            return err->code;
    return 0;
}

/* One question from the pieces [from, to). */
static int draw(struct drawing *d, const enum source_kind *kind, int from, int to, bool *asked, struct err *err)
{
    *asked = false;
    for (int k = 0; k < SOURCE_KINDS && kind[k] != SOURCE_NONE && !*asked; k++)
        if (try_kind(d, kind[k], from, to, asked, err))
            return err->code;
    return 0;
}

static void shuffle(struct drawing *d, int from, int to)
{
    for (int i = to - 1; i > from; i--) {
        int j = from + (int)rng_below(d->rng, (uint64_t)(i - from + 1));
        int swap = d->order[i];
        d->order[i] = d->order[j];
        d->order[j] = swap;
    }
}

/* The first piece, of those that start at or behind part p of n. */
static int part_start(const struct source *s, int p, int n)
{
    double at = (double)s->begin + (double)(s->n - s->begin) * p / n;
    int i = s->first;

    while (i < s->pieces.n && (double)s->pieces.at[i].at < at)
        i++;
    return i;
}

static int draw_all(struct drawing *d, int n, struct err *err)
{
    struct source *s = d->source;
    int first = (int)rng_below(d->rng, N_TURNS), missing = 0;
    bool asked;

    for (int p = 0; p < n; p++) {
        int from = part_start(s, p, n), to = p + 1 < n ? part_start(s, p + 1, n) : s->pieces.n;
        shuffle(d, from, to);
        if (draw(d, turn[(first + p) % N_TURNS], from, to, &asked, err))
            return err->code;
        missing += !asked;
    }
    shuffle(d, s->first, s->pieces.n); /* what the parts lack comes from anywhere */
    for (asked = true; missing > 0 && asked; missing--)
        if (draw(d, turn[0], s->first, s->pieces.n, &asked, err))
            return err->code;
    asked_sort(d->list);
    return 0;
}

int offline_ask(struct asked_list *list, const char *text, int n, struct rng *rng, struct err *err)
{
    struct source source;

    if (source_open(&source, text, err))
        return err->code;
    size_t room = (size_t)source.pieces.n + 1;
    struct drawing d = { .source = &source,
                         .list = list,
                         .rng = rng,
                         .order = calloc(room, sizeof(*d.order)),
                         .taken = calloc(room, sizeof(*d.taken)) };
    for (int i = 0; d.order && i < source.pieces.n; i++)
        d.order[i] = i;
    int code = d.order && d.taken ? draw_all(&d, n, err) : err_nomem(err);
    free(d.order);
    free(d.taken);
    source_close(&source);
    return code;
}

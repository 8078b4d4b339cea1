/* pieces.c - pieces become tokens, and their scores the ranks of merges. */
#include "engine/tokens/pieces.h"

#include "base/array.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int piece_byte(struct text_view name)
{
    if (name.n != 6 || memcmp(name.at, "<0x", 3) != 0 || name.at[5] != '>')
        return -1;
    int high = hex_digit(name.at[3]), low = hex_digit(name.at[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int add_byte(struct bpe *b, int id, struct text_view name, struct err *err)
{
    int byte = piece_byte(name);

    if (byte < 0)
        return err_set(err, ERR_FORMAT, "piece %d, '%.*s', is not a byte like <0x0A>", id, text_view_width(name, 64),
                       name.at);
    return bpe_set_byte(b, id, name, (unsigned char)byte, err);
}

/* A token that is searched in the text before merging. */
static int add_added(struct tokenizer *t, int id, const struct piece *piece, struct err *err)
{
    struct buf text = { 0 };
    enum added_kind kind = piece->type == PIECE_USER_DEFINED ? ADDED_PLAIN : ADDED_SPECIAL;

    text_view_blanks(&text, piece->text);
    int code = buf_failed(&text) ? err_nomem(err) : bpe_set_token(&t->bpe, id, piece->text, err);
    if (!code)
        code = tokenizer_add_token(t, (struct text_view){ buf_str(&text), text.n }, id, kind, err);
    buf_release(&text);
    return code;
}

static int add_normal(struct pieces *p, int id, const struct piece *piece, struct err *err)
{
    if (!isfinite(piece->score))
        return err_set(err, ERR_FORMAT, "the score of piece %d is not a number", id);
    if (!utf8_valid(piece->text.at, piece->text.n))
        return err_set(err, ERR_FORMAT, "piece %d is not UTF-8", id);
    if (ARRAY_PUSH(&p->normal, ((struct ranked){ id, piece->score })))
        return err_nomem(err);
    return bpe_set_token(&p->t->bpe, id, piece->text, err);
}

int pieces_add(struct pieces *p, int id, const struct piece *piece, struct err *err)
{
    switch (piece->type) {
    case PIECE_NORMAL: return add_normal(p, id, piece, err);
    case PIECE_BYTE: return add_byte(&p->t->bpe, id, piece->text, err);
    case PIECE_UNKNOWN:
    case PIECE_CONTROL:
    case PIECE_USER_DEFINED: return add_added(p->t, id, piece, err);
    case PIECE_UNUSED: return err_set(err, ERR_FORMAT, "piece %d is unused, which is not supported", id);
    default: return err_set(err, ERR_FORMAT, "piece %d is of the unknown type %lld", id, (long long)piece->type);
    }
}

/* The highest score first. */
static int compare(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;

    return a->score != b->score ? (a->score < b->score ? 1 : -1) : (a->id > b->id) - (a->id < b->id);
}

int pieces_finish(struct pieces *p, struct err *err)
{
    struct bpe *b = &p->t->bpe;

    if (bpe_finish(b, err))
        return err->code;
    uint32_t *rank = malloc(((size_t)b->n_vocab + 1) * sizeof(*rank));
    if (!rank)
        return err_nomem(err);
    for (int id = 0; id < b->n_vocab; id++)
        rank[id] = BPE_APART;
    if (p->normal.n)
        qsort(p->normal.at, (size_t)p->normal.n, sizeof(*p->normal.at), compare);
    uint32_t now = 0;
    for (int i = 0; i < p->normal.n; i++) {
        now += i && p->normal.at[i].score < p->normal.at[i - 1].score;
        rank[p->normal.at[i].id] = now;
    }
    int code = bpe_join_tokens(b, rank, err);
    free(rank);
    return code ? code : tokenizer_merged(p->t, err);
}

void pieces_release(struct pieces *p)
{
    free(p->normal.at);
    *p = (struct pieces){ 0 };
}

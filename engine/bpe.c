#include "engine/bpe.h"

#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the alphabet ------------------------------------------------------ */

static bool printable(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
}

/* 188 bytes stand for themselves, the other 68 come behind U+00FF in their order. */
static void make_alphabet(struct bpe *b)
{
    uint16_t behind = 256;

    memset(b->byte_of, 0xff, sizeof(b->byte_of)); /* -1 everywhere */
    for (int byte = 0; byte < 256; byte++) {
        b->point[byte] = printable(byte) ? (uint16_t)byte : behind++;
        b->byte_of[b->point[byte]] = (int16_t)byte;
    }
}

/* ---- building ---------------------------------------------------------- */

struct bpe_merge {
    int32_t left, right; // left < 0: a free slot
    int32_t id;
    uint32_t rank;
};

int bpe_init(struct bpe *b, int n_vocab, int n_merges, struct err *err)
{
    *b = (struct bpe){ .n_vocab = n_vocab, .n_slots = 16 };
    while (b->n_slots < 2 * (uint64_t)n_merges && b->n_slots < 1u << 31)
        b->n_slots *= 2;
    b->token = calloc((size_t)n_vocab + 1, sizeof(*b->token));
    b->id = calloc((size_t)n_vocab + 1, sizeof(*b->id));
    b->merge = malloc(b->n_slots * sizeof(*b->merge));
    if (!b->token || !b->id || !b->merge)
        return err_nomem(err);
    memset(b->merge, 0xff, b->n_slots * sizeof(*b->merge)); /* left is -1 everywhere: free */
    make_alphabet(b);
    return 0;
}

void bpe_release(struct bpe *b)
{
    map_release(&b->names);
    free(b->id);
    free(b->token);
    free(b->merge);
    buf_release(&b->bytes);
    *b = (struct bpe){ 0 };
}

/* The bytes a token stands for. A text with characters outside the alphabet (an added token) stands for itself. */
static void add_bytes(struct bpe *b, const char *text, size_t n)
{
    struct buf *out = &b->bytes;
    size_t start = out->n;
    uint32_t point;

    for (size_t at = 0; at < n;) {
        int length = utf8_decode(text + at, n - at, &point);
        if (length == 0 || point >= BPE_POINTS || b->byte_of[point] < 0) {
            out->n = start;
            buf_add(out, text, n);
            return;
        }
        buf_addc(out, (char)b->byte_of[point]);
        at += (size_t)length;
    }
}

int bpe_set_token(struct bpe *b, int64_t id, const char *text, size_t n, struct err *err)
{
    bool added;

    if (id < 0 || id >= b->n_vocab)
        return err_set(err, ERR_FORMAT, "token '%.*s' has id %lld in a vocabulary of %d", (int)(n < 64 ? n : 64), text,
                       (long long)id, b->n_vocab);
    if (b->token[id].set)
        return err_set(err, ERR_FORMAT, "two tokens have id %lld", (long long)id);
    int number = map_add(&b->names, text, n, &added);
    if (number < 0)
        return err_nomem(err);
    if (added)
        b->id[number] = (int32_t)id; /* of equal texts the first is found, all can be decoded */
    size_t start = b->bytes.n;
    add_bytes(b, text, n);
    if (buf_failed(&b->bytes) || b->bytes.n - start > UINT32_MAX)
        return err_nomem(err);
    b->token[id] = (struct bpe_token){ start, (uint32_t)(b->bytes.n - start), true };
    return 0;
}

int32_t bpe_find(const struct bpe *b, const char *text, size_t n)
{
    int number = map_find(&b->names, text, n);

    return number < 0 ? -1 : b->id[number];
}

static struct bpe_merge *slot(const struct bpe *b, int32_t left, int32_t right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15ull;
    uint32_t mask = b->n_slots - 1, at = (uint32_t)(hash >> 32) & mask;

    while (b->merge[at].left >= 0 && (b->merge[at].left != left || b->merge[at].right != right))
        at = (at + 1) & mask;
    return &b->merge[at];
}

int bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right, size_t n_right, struct err *err)
{
    struct buf both = { 0 };

    buf_add(&both, left, n_left);
    buf_add(&both, right, n_right);
    if (buf_failed(&both)) {
        buf_release(&both);
        return err_nomem(err);
    }
    int32_t l = bpe_find(b, left, n_left), r = bpe_find(b, right, n_right), id = bpe_find(b, buf_str(&both), both.n);
    buf_release(&both);
    if (l < 0 || r < 0 || id < 0)
        return err_set(err, ERR_FORMAT, "merge %u ('%.*s' and '%.*s') is not made of tokens", b->n_merges,
                       (int)(n_left < 64 ? n_left : 64), left, (int)(n_right < 64 ? n_right : 64), right);
    if (b->n_merges >= b->n_slots / 2)
        return err_set(err, ERR_FAIL, "more merges than announced");
    *slot(b, l, r) = (struct bpe_merge){ l, r, id, b->n_merges++ }; /* of equal merges the last counts */
    return 0;
}

int bpe_add_merge_text(struct bpe *b, const char *text, size_t n, struct err *err)
{
    const char *blank = memchr(text, ' ', n);

    if (!blank || memchr(blank + 1, ' ', n - (size_t)(blank + 1 - text)))
        return err_set(err, ERR_FORMAT, "merge %u ('%.*s') is not two tokens", b->n_merges, (int)(n < 128 ? n : 128),
                       text);
    return bpe_add_merge(b, text, (size_t)(blank - text), blank + 1, n - (size_t)(blank + 1 - text), err);
}

void bpe_finish(struct bpe *b)
{
    char text[4];

    for (int byte = 0; byte < 256; byte++)
        b->of_byte[byte] = bpe_find(b, text, (size_t)utf8_encode(b->point[byte], text));
}

/* ---- encoding ---------------------------------------------------------- */

/* The tokens of a piece as a list: `next` and `before` are indices, -1 at the ends. id -1: merged into its left. */
struct bpe_symbol {
    int32_t id;
    int before, next;
};

/* A merge that was possible when it was pushed. The heap's root has the lowest (rank, at). */
struct bpe_candidate {
    uint32_t rank;
    int at;
    int32_t id;
};

void bpe_work_release(struct bpe_work *w)
{
    free(w->symbol);
    free(w->heap);
    buf_release(&w->text);
    *w = (struct bpe_work){ 0 };
}

/* A piece of n bytes pushes at most n - 1 candidates at first and two per merge: 3 n. */
static int reserve(struct bpe_work *w, size_t n, struct err *err)
{
    if (n <= w->room)
        return 0;
    size_t room = n < 256 ? 256 : 2 * n;
    if (room > INT_MAX / 3)
        return err_set(err, ERR_FORMAT, "one word of %zu bytes is too long to be tokenised", n);
    struct bpe_symbol *symbol = realloc(w->symbol, room * sizeof(*symbol));
    if (symbol)
        w->symbol = symbol;
    struct bpe_candidate *heap = realloc(w->heap, 3 * room * sizeof(*heap));
    if (heap)
        w->heap = heap;
    if (!symbol || !heap)
        return err_nomem(err);
    w->room = room;
    return 0;
}

static bool before(struct bpe_candidate a, struct bpe_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

/* Remembers that the symbol at `at` may merge with its neighbour, if it may. */
static void push(const struct bpe *b, struct bpe_work *w, int at)
{
    if (at < 0 || w->symbol[at].next < 0)
        return;
    const struct bpe_merge *m = slot(b, w->symbol[at].id, w->symbol[w->symbol[at].next].id);
    if (m->left < 0)
        return;
    struct bpe_candidate new = { m->rank, at, m->id };
    int i = w->n_heap++;
    for (; i > 0 && before(new, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = new;
}

static struct bpe_candidate pop(struct bpe_work *w)
{
    struct bpe_candidate root = w->heap[0], last = w->heap[--w->n_heap];
    int i = 0;

    for (int child; (child = 2 * i + 1) < w->n_heap; i = child) {
        if (child + 1 < w->n_heap && before(w->heap[child + 1], w->heap[child]))
            child++;
        if (!before(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return root;
}

static int start(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n)
{
    int symbols = 0;

    for (size_t i = 0; i < n; i++) {
        int32_t id = b->of_byte[(unsigned char)piece[i]];
        if (id < 0)
            continue;
        w->symbol[symbols] = (struct bpe_symbol){ id, symbols - 1, symbols + 1 };
        symbols++;
    }
    if (symbols > 0)
        w->symbol[symbols - 1].next = -1;
    w->n_heap = 0;
    for (int i = 0; i < symbols; i++)
        push(b, w, i);
    return symbols;
}

static void merge_all(const struct bpe *b, struct bpe_work *w)
{
    while (w->n_heap > 0) {
        struct bpe_candidate c = pop(w);
        struct bpe_symbol *left = &w->symbol[c.at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct bpe_symbol *right = &w->symbol[left->next];
        const struct bpe_merge *m = slot(b, left->id, right->id);
        if (m->left < 0 || m->id != c.id)
            continue; /* one of the two has changed since */
        left->id = c.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            w->symbol[left->next].before = c.at;
        push(b, w, left->before);
        push(b, w, c.at);
    }
}

/* The piece in the alphabet of the vocabulary. */
static int32_t find_whole(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n)
{
    char text[4];

    buf_clear(&w->text);
    for (size_t i = 0; i < n; i++)
        buf_add(&w->text, text, (size_t)utf8_encode(b->point[(unsigned char)piece[i]], text));
    return buf_failed(&w->text) ? -1 : bpe_find(b, buf_str(&w->text), w->text.n);
}

int bpe_encode(const struct bpe *b, struct bpe_work *w, const char *piece, size_t n, struct tokens *out,
               struct err *err)
{
    int32_t whole = b->whole_word_first ? find_whole(b, w, piece, n) : -1;

    if (whole >= 0)
        return tokens_add(out, whole, err);
    if (reserve(w, n, err))
        return err->code;
    int symbols = start(b, w, piece, n);
    merge_all(b, w);
    for (int i = symbols > 0 ? 0 : -1; i >= 0; i = w->symbol[i].next)
        if (tokens_add(out, w->symbol[i].id, err))
            return err->code;
    return 0;
}

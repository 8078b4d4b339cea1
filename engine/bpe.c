/* bpe.c - GPT-2's alphabet, the vocabulary and its merges, and the merging of one piece.
 *
 * Merges are a hash table of open addressing from two ids to the id of both. A piece is a linked list of tokens in an
 * array. A binary heap holds the merges that were possible when they were pushed; one whose tokens have changed since
 * is skipped when it comes out. So a piece of n bytes takes n log n steps.
 */
#include "engine/bpe.h"

#include "base/array.h"
#include "base/utf8.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the alphabet ------------------------------------------------------ */

static bool printable(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
}

/* 188 bytes stand for themselves, the other 68 come after U+00FF in their order. */
static void make_alphabet(struct bpe *b)
{
    uint16_t next = 256;

    memset(b->byte_of, 0xff, sizeof(b->byte_of)); /* -1 everywhere */
    for (int byte = 0; byte < 256; byte++) {
        b->point[byte] = printable(byte) ? (uint16_t)byte : next++;
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

/* Adds the bytes a token stands for. A text with characters outside the alphabet (an added token) stands for itself. */
static void add_bytes(struct bpe *b, struct text_view text)
{
    struct buf *out = &b->bytes;
    size_t start = out->n;
    uint32_t point;

    for (size_t at = 0; at < text.n;) {
        int length = utf8_decode(text.at + at, text.n - at, &point);
        if (length == 0 || point >= BPE_POINTS || b->byte_of[point] < 0) {
            out->n = start;
            buf_add(out, text.at, text.n);
            return;
        }
        buf_addc(out, (char)b->byte_of[point]);
        at += (size_t)length;
    }
}

int bpe_set_token(struct bpe *b, int64_t id, struct text_view text, struct err *err)
{
    bool added;

    if (id < 0 || id >= b->n_vocab)
        return err_set(err, ERR_FORMAT, "token '%.*s' has id %lld in a vocabulary of %d", text_view_width(text, 64),
                       text.at, (long long)id, b->n_vocab);
    if (b->token[id].set)
        return err_set(err, ERR_FORMAT, "two tokens have id %lld", (long long)id);
    int number = map_add(&b->names, text.at, text.n, &added);
    if (number < 0)
        return err_nomem(err);
    if (added)
        b->id[number] = (int32_t)id; /* of equal texts the first is found; all can be decoded */
    size_t start = b->bytes.n;
    add_bytes(b, text);
    if (buf_failed(&b->bytes) || b->bytes.n - start > UINT32_MAX)
        return err_nomem(err);
    b->token[id] = (struct bpe_token){ start, (uint32_t)(b->bytes.n - start), true };
    return 0;
}

int32_t bpe_find(const struct bpe *b, struct text_view text)
{
    int number = map_find(&b->names, text.at, text.n);

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

int bpe_add_merge(struct bpe *b, struct text_view left, struct text_view right, struct err *err)
{
    struct buf both = { 0 };

    buf_add(&both, left.at, left.n);
    buf_add(&both, right.at, right.n);
    if (buf_failed(&both)) {
        buf_release(&both);
        return err_nomem(err);
    }
    int32_t l = bpe_find(b, left), r = bpe_find(b, right),
            id = bpe_find(b, (struct text_view){ buf_str(&both), both.n });
    buf_release(&both);
    if (l < 0 || r < 0 || id < 0)
        return err_set(err, ERR_FORMAT, "merge %u ('%.*s' and '%.*s') is not made of tokens", b->n_merges,
                       text_view_width(left, 64), left.at, text_view_width(right, 64), right.at);
    if (b->n_merges >= b->n_slots / 2)
        return err_set(err, ERR_FAIL, "more merges than announced");
    *slot(b, l, r) = (struct bpe_merge){ l, r, id, b->n_merges++ }; /* of equal merges the last counts */
    return 0;
}

int bpe_add_merge_text(struct bpe *b, struct text_view text, struct err *err)
{
    const char *blank = memchr(text.at, ' ', text.n), *end = text.at + text.n;

    if (!blank || memchr(blank + 1, ' ', (size_t)(end - (blank + 1))))
        return err_set(err, ERR_FORMAT, "merge %u ('%.*s') is not two tokens", b->n_merges, text_view_width(text, 128),
                       text.at);
    const struct text_view left = { text.at, (size_t)(blank - text.at) };
    const struct text_view right = { blank + 1, (size_t)(end - (blank + 1)) };
    return bpe_add_merge(b, left, right, err);
}

void bpe_finish(struct bpe *b)
{
    char text[4];

    for (int byte = 0; byte < 256; byte++)
        b->of_byte[byte] = bpe_find(b, (struct text_view){ text, (size_t)utf8_encode(b->point[byte], text) });
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
    free(w->symbols.at);
    free(w->heap.at);
    buf_release(&w->text);
    *w = (struct bpe_work){ 0 };
}

/* A piece of n bytes pushes at most n - 1 candidates at first and two per merge: fewer than 3n. */
static int reserve(struct bpe_work *w, size_t n, struct err *err)
{
    if (n > INT_MAX / 3)
        return err_set(err, ERR_FORMAT, "a word of %zu bytes is too long to be tokenised", n);
    return ARRAY_GROW(&w->symbols, n) || ARRAY_GROW(&w->heap, 3 * n) ? err_nomem(err) : 0;
}

static bool before(struct bpe_candidate a, struct bpe_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

/* Pushes the merge of the symbol at `at` with its right neighbour, if there is one. */
static void push(const struct bpe *b, struct bpe_work *w, int at)
{
    const struct bpe_symbol *symbol = w->symbols.at;

    if (at < 0 || symbol[at].next < 0)
        return;
    const struct bpe_merge *m = slot(b, symbol[at].id, symbol[symbol[at].next].id);
    if (m->left < 0)
        return;
    struct bpe_candidate new = { m->rank, at, m->id }, *heap = w->heap.at;
    size_t i = w->heap.n++;
    for (; i > 0 && before(new, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = new;
}

static struct bpe_candidate pop(struct bpe_work *w)
{
    struct bpe_candidate *heap = w->heap.at, root = heap[0], last = heap[--w->heap.n];
    size_t i = 0, n = w->heap.n;

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return root;
}

/* Makes the list of one token per byte, and the heap of its merges. Returns the number of tokens. */
static int start(const struct bpe *b, struct bpe_work *w, struct text_view piece)
{
    struct bpe_symbol *symbol = w->symbols.at;
    int n = 0;

    for (size_t i = 0; i < piece.n; i++) {
        int32_t id = b->of_byte[(unsigned char)piece.at[i]];
        if (id < 0)
            continue;
        symbol[n] = (struct bpe_symbol){ id, n - 1, n + 1 };
        n++;
    }
    if (n > 0)
        symbol[n - 1].next = -1;
    w->heap.n = 0;
    for (int i = 0; i < n; i++)
        push(b, w, i);
    return n;
}

static void merge_all(const struct bpe *b, struct bpe_work *w)
{
    struct bpe_symbol *symbol = w->symbols.at;

    while (w->heap.n > 0) {
        struct bpe_candidate c = pop(w);
        struct bpe_symbol *left = &symbol[c.at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct bpe_symbol *right = &symbol[left->next];
        const struct bpe_merge *m = slot(b, left->id, right->id);
        if (m->left < 0 || m->id != c.id)
            continue; /* one of the two has changed since */
        left->id = c.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            symbol[left->next].before = c.at;
        push(b, w, left->before);
        push(b, w, c.at);
    }
}

/* The token that is the whole piece, -1: none. */
static int32_t find_whole(const struct bpe *b, struct bpe_work *w, struct text_view piece)
{
    char text[4];

    buf_clear(&w->text);
    for (size_t i = 0; i < piece.n; i++)
        buf_add(&w->text, text, (size_t)utf8_encode(b->point[(unsigned char)piece.at[i]], text));
    return buf_failed(&w->text) ? -1 : bpe_find(b, (struct text_view){ buf_str(&w->text), w->text.n });
}

int bpe_encode(const struct bpe *b, struct bpe_work *w, struct text_view piece, struct tokens *out, struct err *err)
{
    int32_t whole = b->whole_word_first ? find_whole(b, w, piece) : -1;

    if (whole >= 0)
        return tokens_add(out, whole, err);
    if (reserve(w, piece.n, err))
        return err->code;
    int n = start(b, w, piece);
    merge_all(b, w);
    for (int i = n > 0 ? 0 : -1; i >= 0; i = w->symbols.at[i].next)
        if (tokens_add(out, w->symbols.at[i].id, err))
            return err->code;
    return 0;
}

/* bpe_encode.c - the merging of one piece, and how many of its ids are certain when its end is open.
 *
 * A piece is cut into segments where no merge can cross: with SentencePiece, where a piece is a whole text, into words.
 * A table keeps the ids of short segments, since words repeat. Otherwise a segment is a linked list of tokens in an
 * array. A binary heap holds merges that were possible when pushed; a merge is skipped if its tokens have changed
 * since. So a segment of n bytes takes O(n log n) steps.
 */
#include "engine/tokens/bpe.h"

#include "base/array.h"
#include "base/utf8.h"
#include "engine/tokens/bpe_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The tokens of a segment as a list: `next` and `before` are indices, -1 at the ends. */
struct bpe_symbol {
    int32_t id; // or one of the two below
    int before, next;
    uint32_t at; // bytes of the segment before it
};
enum { MERGED = -1, UNKNOWN = -2 }; // into its left neighbour; a character without a token: its bytes' tokens stand in

/* A merge that was possible when it was pushed. The heap's root has the lowest (rank, at). */
struct bpe_candidate {
    uint32_t rank;
    int at;
    int32_t id;
};

/* 64 bytes: a cache line of the CPU. The last byte of the key is the number of bytes, 0 in an empty entry. */
enum { CACHE_ENTRIES = 1 << 12, CACHED_BYTES = 23, CACHED_IDS = 9 };
struct bpe_cached {
    uint64_t key[3];
    int32_t n;
    int32_t id[CACHED_IDS];
};

void bpe_work_release(struct bpe_work *w)
{
    free(w->symbols.at);
    free(w->heap.at);
    free(w->cache);
    buf_release(&w->text);
    *w = (struct bpe_work){ 0 };
}

/* ---- merging ----------------------------------------------------------- */

/* A segment of n bytes pushes at most n - 1 candidates at first and two per merge: fewer than 3n. */
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
    const struct bpe_merge *m = bpe_slot(b, symbol[at].id, symbol[symbol[at].next].id);
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

/* The number of bytes of the first character, at most the segment's. */
static size_t char_bytes(struct text_view text)
{
    size_t n = 1;

    while (n < text.n && ((unsigned char)text.at[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* The first token of a text before any merge, and the number of its bytes. */
static int32_t first_token(const struct bpe *b, struct text_view text, size_t *n)
{
    unsigned char c = (unsigned char)text.at[0];

    *n = 1;
    if (b->kind != BPE_CHARS)
        return b->of_byte[c];
    int32_t id = c < 128 ? b->of_ascii[c] : -1;
    if (c >= 128) {
        *n = char_bytes(text);
        id = bpe_find(b, (struct text_view){ text.at, *n });
    }
    return id < 0 ? UNKNOWN : id;
}

/* Makes the list of a segment's tokens before any merge, and the heap of its merges. */
static void start(const struct bpe *b, struct bpe_work *w, struct text_view text)
{
    struct bpe_symbol *symbol = w->symbols.at;
    int n = 0;

    for (size_t at = 0, bytes; at < text.n; at += bytes) {
        int32_t id = first_token(b, (struct text_view){ text.at + at, text.n - at }, &bytes);
        if (id == -1)
            continue; /* a byte without a token is dropped */
        symbol[n] = (struct bpe_symbol){ id, n - 1, n + 1, (uint32_t)at };
        n++;
    }
    if (n > 0)
        symbol[n - 1].next = -1;
    w->symbols.n = (size_t)n;
    w->heap.n = 0;
    for (int i = 0; i < n; i++)
        push(b, w, i);
}

/* Leaves the ids of a segment in w->symbols. */
static int merge(const struct bpe *b, struct bpe_work *w, struct text_view segment, struct err *err)
{
    if (reserve(w, segment.n, err))
        return err->code;
    start(b, w, segment);
    struct bpe_symbol *symbol = w->symbols.at;
    while (w->heap.n > 0) {
        struct bpe_candidate c = pop(w);
        struct bpe_symbol *left = &symbol[c.at];
        if (left->id < 0 || left->next < 0)
            continue;
        struct bpe_symbol *right = &symbol[left->next];
        const struct bpe_merge *m = bpe_slot(b, left->id, right->id);
        if (m->left < 0 || m->id != c.id)
            continue; /* one of the two has changed since */
        left->id = c.id;
        left->next = right->next;
        right->id = MERGED;
        if (left->next >= 0)
            symbol[left->next].before = c.at;
        push(b, w, left->before);
        push(b, w, c.at);
    }
    return 0;
}

static int add_symbol(const struct bpe *b, const struct bpe_symbol *s, struct text_view segment, struct tokens *out,
                      struct err *err)
{
    if (s->id != UNKNOWN)
        return tokens_add(out, s->id, err);
    struct text_view c = { segment.at + s->at, segment.n - s->at };
    for (size_t i = 0, n = char_bytes(c); i < n; i++)
        if (tokens_add(out, b->of_byte[(unsigned char)c.at[i]], err))
            return err->code;
    return 0;
}

static int merge_segment(const struct bpe *b, struct bpe_work *w, struct text_view segment, struct tokens *out,
                         struct err *err)
{
    if (merge(b, w, segment, err))
        return err->code;
    for (int i = w->symbols.n > 0 ? 0 : -1; i >= 0; i = w->symbols.at[i].next)
        if (add_symbol(b, &w->symbols.at[i], segment, out, err))
            return err->code;
    return 0;
}

/* The token for the whole piece, -1: none. */
static int32_t find_whole(const struct bpe *b, struct bpe_work *w, struct text_view piece)
{
    char text[4];

    if (b->kind == BPE_BYTES)
        return bpe_find(b, piece);
    buf_clear(&w->text);
    for (size_t i = 0; i < piece.n; i++)
        if (b->kind == BPE_ALPHABET)
            buf_add(&w->text, text, (size_t)utf8_encode(b->point[(unsigned char)piece.at[i]], text));
        else if (piece.at[i] == ' ')
            buf_adds(&w->text, TEXT_BLANK);
        else
            buf_addc(&w->text, piece.at[i]);
    return buf_failed(&w->text) ? -1 : bpe_find(b, (struct text_view){ buf_str(&w->text), w->text.n });
}

static int encode_segment(const struct bpe *b, struct bpe_work *w, struct text_view segment, struct tokens *out,
                          struct err *err)
{
    int32_t whole = b->whole_word_first ? find_whole(b, w, segment) : -1;

    return whole >= 0 ? tokens_add(out, whole, err) : merge_segment(b, w, segment, out, err);
}

/* ---- short segments ---------------------------------------------------- */

/* The entry for a short segment, filled or not. */
static struct bpe_cached *look_up(struct bpe_work *w, struct text_view segment, uint64_t key[3])
{
    unsigned char bytes[CACHED_BYTES + 1] = { 0 };

    memcpy(bytes, segment.at, segment.n);
    bytes[CACHED_BYTES] = (unsigned char)segment.n;
    memcpy(key, bytes, sizeof(bytes));
    uint64_t hash = key[0] * 0x9e3779b97f4a7c15ull ^ key[1] * 0xc2b2ae3d27d4eb4full ^ key[2] * 0x165667b19e3779f9ull;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
    return &w->cache[hash >> 40 & (CACHE_ENTRIES - 1)];
}

static void keep(struct bpe_cached *c, const uint64_t key[3], const int32_t *id, int n)
{
    if (n > CACHED_IDS)
        return;
    memcpy(c->key, key, sizeof(c->key));
    c->n = n;
    for (int i = 0; i < n; i++)
        c->id[i] = id[i];
}

static int encode_cached(const struct bpe *b, struct bpe_work *w, struct text_view segment, struct tokens *out,
                         struct err *err)
{
    uint64_t key[3];

    if (segment.n == 0 || segment.n > CACHED_BYTES)
        return encode_segment(b, w, segment, out, err);
    if (!w->cache)
        w->cache = calloc(CACHE_ENTRIES, sizeof(*w->cache));
    if (!w->cache)
        return err_nomem(err);
    struct bpe_cached *c = look_up(w, segment, key);
    if (memcmp(c->key, key, sizeof(key)) != 0) {
        int from = out->n, code = encode_segment(b, w, segment, out, err);
        if (!code && out->n > from)
            keep(c, key, out->at + from, out->n - from);
        return code;
    }
    for (int i = 0; i < c->n; i++)
        if (tokens_add(out, c->id[i], err))
            return err->code;
    return 0;
}

/* ---- pieces ------------------------------------------------------------ */

/* The end of the segment that begins at `at`: the next border that no merge can cross. */
static size_t segment_end(const struct bpe *b, struct text_view piece, size_t at)
{
    for (at++; at < piece.n && bpe_joined(b, piece.at[at - 1], piece.at[at]); at++)
        ;
    return at;
}

int bpe_encode(const struct bpe *b, struct bpe_work *w, struct text_view piece, struct tokens *out, struct err *err)
{
    if (b->whole_word_first)
        return encode_cached(b, w, piece, out, err);
    for (size_t at = 0, end; at < piece.n; at = end) {
        end = segment_end(b, piece, at);
        if (encode_cached(b, w, (struct text_view){ piece.at + at, end - at }, out, err))
            return err->code;
    }
    return 0;
}

/* ---- open pieces ------------------------------------------------------- */

/* The ids of a text, and where each ends. */
struct ends {
    struct tokens ids;
    struct {
        size_t *at;
        size_t n, cap;
    } end;
};

static void ends_release(struct ends *e)
{
    tokens_release(&e->ids);
    free(e->end.at);
}

/* Is there a token that begins with this text and is longer? */
static bool begins_token(const struct bpe *b, struct text_view text)
{
    int low = 0, high = b->n_sorted;

    while (low < high) {
        int middle = low + (high - low) / 2;
        struct text_view t = bpe_bytes(b, b->sorted[middle]);
        int order = memcmp(t.at, text.at, t.n < text.n ? t.n : text.n);
        if (order < 0 || (order == 0 && t.n <= text.n))
            low = middle + 1;
        else
            high = middle;
    }
    struct text_view t = low < b->n_sorted ? bpe_bytes(b, b->sorted[low]) : (struct text_view){ "", 0 };
    return t.n > text.n && memcmp(t.at, text.at, text.n) == 0;
}

/* One search for the certain ids of a segment with an open end. `whole`: its ids if nothing follows. */
struct search {
    const struct bpe *b;
    struct bpe_work *w;
    struct text_view segment;
    struct ends whole;
    size_t first; // ids of `whole` that are assumed to be certain
    size_t n;     // ids of `whole` that are certain, as far as the search has got
    bool failed;  // the assumption was wrong: `first` must be smaller
};

/* Bytes first .. end - 1 of the segment. */
struct range {
    size_t first, end;
};

static int merge_range(struct search *s, struct range range, struct err *err)
{
    return merge(s->b, s->w, (struct text_view){ s->segment.at + range.first, range.end - range.first }, err);
}

static int add_ends(struct search *s, struct range range, struct ends *out, struct err *err)
{
    const struct text_view text = { s->segment.at + range.first, range.end - range.first };

    if (merge_range(s, range, err))
        return err->code;
    for (int i = s->w->symbols.n > 0 ? 0 : -1; i >= 0; i = s->w->symbols.at[i].next) {
        const struct bpe_symbol *symbol = &s->w->symbols.at[i];
        if (add_symbol(s->b, symbol, text, &out->ids, err))
            return err->code;
        size_t stop = range.first + (symbol->next < 0 ? text.n : s->w->symbols.at[symbol->next].at);
        while (out->end.n < (size_t)out->ids.n)
            if (ARRAY_PUSH(&out->end, stop))
                return err_nomem(err);
    }
    return 0;
}

/* Does the border between the two tokens of a range remain when both are encoded together? */
static int stay_apart(struct search *s, struct range range, size_t border, bool *apart, struct err *err)
{
    if (merge_range(s, range, err))
        return err->code;
    for (size_t i = 0; i < s->w->symbols.n; i++)
        *apart |= s->w->symbols.at[i].id != MERGED && range.first + s->w->symbols.at[i].at == border;
    return 0;
}

/* Suppose that the token across the segment's end begins at `at`: the bytes before it have ids of their own. Lowers
 * s->n to the ids that these and `whole` have in common. */
static int consider(struct search *s, size_t at, struct err *err)
{
    struct ends other = { 0 };
    size_t first = s->first ? s->whole.end.at[s->first - 1] : 0, i = 0;
    int code = add_ends(s, (struct range){ first, at }, &other, err);

    if (!code && s->first && other.end.n) {
        const struct range pair = { s->first > 1 ? s->whole.end.at[s->first - 2] : 0, other.end.at[0] };
        bool apart = false;
        code = stay_apart(s, pair, first, &apart, err);
        s->failed |= !code && !apart;
    }
    while (i < other.end.n && s->first + i < s->n && other.ids.at[i] == s->whole.ids.at[s->first + i])
        i++;
    s->n = s->first + i;
    ends_release(&other);
    return code;
}

/* Considers every position where a token across the end of the segment may begin: some longer token begins with the
 * rest of the segment. */
static int consider_all(struct search *s, struct err *err)
{
    const struct text_view t = s->segment;

    s->n = s->whole.end.n;
    s->failed = false;
    for (size_t n = 1; n <= t.n && n < s->b->longest && !s->failed; n++) {
        const struct text_view rest = { t.at + t.n - n, n };
        bool inside = s->b->kind == BPE_CHARS && ((unsigned char)rest.at[0] & 0xc0) == 0x80;
        if (!inside && begins_token(s->b, rest) && consider(s, t.n - n, err))
            return err->code;
    }
    return 0;
}

/* The number of ids that end before the last `window` bytes. The ids of one character stay together. */
static size_t ids_before(const struct search *s, size_t window)
{
    const size_t *end = s->whole.end.at;
    size_t n = s->whole.end.n;

    while (n > 0 && (end[n - 1] + window > s->segment.n || (n < s->whole.end.n && end[n] == end[n - 1])))
        n--;
    return n;
}

/* Finds s->n. Only the last `window` bytes of a long segment are encoded repeatedly. */
static int search(struct search *s, struct err *err)
{
    if (add_ends(s, (struct range){ 0, s->segment.n }, &s->whole, err))
        return err->code;
    for (size_t window = 256 + 2 * (size_t)s->b->longest;; window *= 4) {
        s->first = ids_before(s, window);
        if (consider_all(s, err))
            return err->code;
        if (!s->failed)
            return 0;
    }
}

int bpe_encode_open(const struct bpe *b, struct bpe_work *w, struct bpe_open *piece, struct tokens *out,
                    struct err *err)
{
    const struct text_view text = piece->text;
    size_t at = 0;

    piece->done = 0;
    if (!b->sorted || b->whole_word_first || text.n == 0)
        return 0;
    for (size_t end; (end = segment_end(b, text, at)) < text.n; at = end)
        if (encode_cached(b, w, (struct text_view){ text.at + at, end - at }, out, err))
            return err->code;
    struct search s = { .b = b, .w = w, .segment = { text.at + at, text.n - at } };
    int code = search(&s, err);
    for (size_t i = 0; i < s.n && !code; i++)
        code = tokens_add(out, s.whole.ids.at[i], err);
    piece->done = at + (s.n ? s.whole.end.at[s.n - 1] : 0);
    ends_release(&s.whole);
    return code;
}

/* bpe.c - GPT-2's alphabet, the vocabulary and its merges. Encoding: bpe_encode.c. */
#include "engine/tokens/bpe.h"

#include "base/array.h"
#include "base/utf8.h"
#include "engine/tokens/bpe_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the alphabet ------------------------------------------------------ */

static bool printable(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
}

/* 188 bytes stand for themselves, the other 68 follow U+00FF in ascending order. */
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

enum { SLOTS_MIN = 1 << 10 };

/* Gives the table of merges n_slots slots, a power of two. */
static int set_slots(struct bpe *b, uint32_t n_slots, struct err *err)
{
    struct bpe_merge *old = b->merge, *new = malloc(n_slots * sizeof(*new));
    uint32_t n_old = old ? b->n_slots : 0;

    if (!new)
        return err_nomem(err);
    memset(new, 0xff, n_slots * sizeof(*new)); /* left is -1 everywhere: free */
    b->merge = new;
    b->n_slots = n_slots;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].left >= 0)
            *bpe_slot(b, old[i].left, old[i].right) = old[i];
    free(old);
    return 0;
}

int bpe_init(struct bpe *b, enum bpe_kind kind, int n_vocab, struct err *err)
{
    *b = (struct bpe){ .kind = kind, .n_vocab = n_vocab };
    b->token = calloc((size_t)n_vocab + 1, sizeof(*b->token));
    b->id = calloc((size_t)n_vocab + 1, sizeof(*b->id));
    if (!b->token || !b->id)
        return err_nomem(err);
    make_alphabet(b);
    memset(b->of_byte, 0xff, sizeof(b->of_byte)); /* -1 everywhere: none */
    memset(b->of_ascii, 0xff, sizeof(b->of_ascii));
    if (kind == BPE_CHARS) /* no border is within a character */
        for (size_t pair = 0; pair < 65536; pair++)
            if ((pair & 0xc0) == 0x80)
                b->joined[pair / 64] |= 1ull << pair % 64;
    return set_slots(b, SLOTS_MIN, err);
}

void bpe_release(struct bpe *b)
{
    map_release(&b->names);
    free(b->id);
    free(b->token);
    free(b->merge);
    free(b->sorted);
    buf_release(&b->bytes);
    *b = (struct bpe){ 0 };
}

/* Adds the bytes of a token in GPT-2's alphabet. A text with other characters (an added token) stands for itself. */
static void add_alphabet(struct bpe *b, struct text_view text)
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

/* Adds the bytes that a token stands for. */
static void add_bytes(struct bpe *b, struct text_view text)
{
    if (b->kind == BPE_ALPHABET)
        add_alphabet(b, text);
    else if (b->kind == BPE_CHARS)
        text_view_blanks(&b->bytes, text);
    else
        buf_add(&b->bytes, text.at, text.n);
}

/* Sets a token; its bytes are those from `start` on. */
static int set_token(struct bpe *b, int64_t id, struct text_view text, size_t start, struct err *err)
{
    bool added;

    int number = map_add(&b->names, text.at, text.n, &added);
    if (number < 0 || buf_failed(&b->bytes) || b->bytes.n - start > UINT32_MAX)
        return err_nomem(err);
    if (added)
        b->id[number] = (int32_t)id; /* of equal texts bpe_find() finds the first; all can be decoded */
    b->token[id] = (struct bpe_token){ start, (uint32_t)(b->bytes.n - start), true };
    return 0;
}

static int check_id(const struct bpe *b, int64_t id, struct text_view text, struct err *err)
{
    if (id < 0 || id >= b->n_vocab)
        return err_set(err, ERR_FORMAT, "token '%.*s' has id %lld in a vocabulary of %d", text_view_width(text, 64),
                       text.at, (long long)id, b->n_vocab);
    if (b->token[id].set)
        return err_set(err, ERR_FORMAT, "two tokens have id %lld", (long long)id);
    return 0;
}

int bpe_set_token(struct bpe *b, int64_t id, struct text_view text, struct err *err)
{
    size_t start = b->bytes.n;

    if (check_id(b, id, text, err))
        return err->code;
    add_bytes(b, text);
    return set_token(b, id, text, start, err);
}

int bpe_set_byte(struct bpe *b, int64_t id, struct text_view text, unsigned char byte, struct err *err)
{
    size_t start = b->bytes.n;

    if (check_id(b, id, text, err))
        return err->code;
    buf_addc(&b->bytes, (char)byte);
    b->of_byte[byte] = (int32_t)id;
    return set_token(b, id, text, start, err);
}

int32_t bpe_find(const struct bpe *b, struct text_view text)
{
    int number = map_find(&b->names, text.at, text.n);

    return number < 0 ? -1 : b->id[number];
}

struct text_view bpe_bytes(const struct bpe *b, int32_t id)
{
    return (struct text_view){ buf_str(&b->bytes) + b->token[id].at, b->token[id].n };
}

int bpe_finish(struct bpe *b, struct err *err)
{
    char text[4];

    for (int byte = 0; byte < 256; byte++) {
        char plain = (char)byte;
        if (b->kind == BPE_ALPHABET)
            b->of_byte[byte] = bpe_find(b, (struct text_view){ text, (size_t)utf8_encode(b->point[byte], text) });
        else if (b->kind == BPE_BYTES)
            b->of_byte[byte] = bpe_find(b, (struct text_view){ &plain, 1 });
        if (b->kind != BPE_ALPHABET && b->of_byte[byte] < 0)
            return err_set(err, ERR_FORMAT, "byte 0x%02X has no token, so some characters would have none", byte);
        if (b->kind == BPE_CHARS && byte < 128)
            b->of_ascii[byte] = bpe_find(b, byte == ' ' ? text_view_of(TEXT_BLANK) : (struct text_view){ &plain, 1 });
    }
    return 0;
}

/* ---- merges ------------------------------------------------------------ */

/* The last of equal merges counts. */
static int add_merge(struct bpe *b, struct bpe_merge m, struct err *err)
{
    if (b->n_merges >= b->n_slots / 2) {
        if (b->n_slots >= 1u << 30)
            return err_set(err, ERR_FORMAT, "more than %u merges", b->n_merges);
        if (set_slots(b, b->n_slots * 2, err))
            return err->code;
    }
    struct text_view left = bpe_bytes(b, m.left), right = bpe_bytes(b, m.right);
    if (left.n && right.n) {
        unsigned pair = (unsigned)(unsigned char)left.at[left.n - 1] << 8 | (unsigned char)right.at[0];
        b->joined[pair / 64] |= 1ull << pair % 64;
    }
    if (b->token[m.id].n > b->longest)
        b->longest = b->token[m.id].n;
    *bpe_slot(b, m.left, m.right) = m;
    b->n_merges++;
    return 0;
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
    return add_merge(b, (struct bpe_merge){ l, r, id, b->n_merges }, err);
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

/* Adds every merge of two tokens that gives this one. */
static int join_token(struct bpe *b, const uint32_t *rank, int32_t id, struct err *err)
{
    struct text_view text = { b->names.at[id].key, b->names.at[id].n };

    for (size_t n = 1; n < text.n; n++) {
        if (b->kind == BPE_CHARS && ((unsigned char)text.at[n] & 0xc0) == 0x80)
            continue;
        int left = map_find(&b->names, text.at, n);
        int right = left < 0 ? -1 : map_find(&b->names, text.at + n, text.n - n);
        if (right < 0)
            continue;
        struct bpe_merge m = { b->id[left], b->id[right], b->id[id], rank[b->id[id]] };
        if (rank[m.left] != BPE_APART && rank[m.right] != BPE_APART && add_merge(b, m, err))
            return err->code;
    }
    return 0;
}

int bpe_join_tokens(struct bpe *b, const uint32_t *rank, struct err *err)
{
    for (int number = 0; number < b->names.n; number++) {
        if (rank[b->id[number]] == BPE_APART)
            continue;
        if (b->names.at[number].n > BPE_PIECE_MAX)
            return err_set(err, ERR_FORMAT, "token %d has %zu bytes, more than %d", b->id[number],
                           b->names.at[number].n, BPE_PIECE_MAX);
        if (join_token(b, rank, number, err))
            return err->code;
    }
    return 0;
}

/* ---- the results of merges, sorted -------------------------------------- */

static int compare(const void *x, const void *y, void *arg)
{
    struct text_view a = bpe_bytes(arg, *(const int32_t *)x), b = bpe_bytes(arg, *(const int32_t *)y);
    int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);

    return order ? order : a.n < b.n ? -1 : a.n > b.n;
}

int bpe_open_pieces(struct bpe *b, struct err *err)
{
    if (b->longest > BPE_PIECE_MAX)
        return err_set(err, ERR_FORMAT, "a token has %u bytes, more than %d", b->longest, BPE_PIECE_MAX);
    bool *seen = calloc((size_t)b->n_vocab + 1, sizeof(*seen));

    b->sorted = malloc(((size_t)b->n_vocab + 1) * sizeof(*b->sorted));
    if (!b->sorted || !seen) {
        free(seen);
        return err_nomem(err);
    }
    for (uint32_t i = 0; i < b->n_slots; i++) {
        int32_t id = b->merge[i].left < 0 ? -1 : b->merge[i].id;
        if (id >= 0 && !seen[id]) {
            seen[id] = true;
            b->sorted[b->n_sorted++] = id;
        }
    }
    free(seen);
    qsort_r(b->sorted, (size_t)b->n_sorted, sizeof(*b->sorted), compare, b);
    return 0;
}

/* nfc.c - utf8proc says which characters join: every character is decomposed once. The first character of a
 * decomposition may join with the next one, the others with the one before.
 */
#include "engine/tokens/nfc.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { POINTS = 0x110000, DECOMPOSED_MAX = 8 }; // canonical decompositions have up to four characters

enum { JOINS_NEXT = 1, JOINS_LAST = 2 };

struct nfc {
    unsigned char joins[POINTS]; // only few of its pages are touched
};

static int decompose(uint32_t point, utf8proc_int32_t out[DECOMPOSED_MAX])
{
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)point, out, DECOMPOSED_MAX, UTF8PROC_DECOMPOSE, NULL);

    return n < 1 || n > DECOMPOSED_MAX ? 0 : (int)n;
}

struct nfc *nfc_new(struct err *err)
{
    struct nfc *n = calloc(1, sizeof(*n));

    if (!n) {
        err_nomem(err);
        return NULL;
    }
    for (uint32_t point = 0; point < POINTS; point++) {
        utf8proc_int32_t part[DECOMPOSED_MAX];
        int count = decompose(point, part);
        if (count < 2)
            continue;
        n->joins[part[0]] |= JOINS_NEXT;
        for (int i = 1; i < count; i++)
            n->joins[part[i]] |= JOINS_LAST;
    }
    return n;
}

void nfc_free(struct nfc *n)
{
    free(n);
}

static bool is_ascii(struct text_view text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.at[i] >= 0x80)
            return false;
    return true;
}

int nfc_add(struct buf *out, struct text_view text, struct err *err)
{
    utf8proc_uint8_t *nfc = NULL;

    if (is_ascii(text)) {
        buf_add(out, text.at, text.n);
        return buf_failed(out) ? err_nomem(err) : 0;
    }
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text.at, (utf8proc_ssize_t)text.n, &nfc,
                                           UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length < 0)
        return err_set(err, ERR_FAIL, "cannot normalise a text: %s", utf8proc_errmsg(length));
    buf_add(out, nfc, (size_t)length);
    free(nfc);
    return buf_failed(out) ? err_nomem(err) : 0;
}

/* Does a character, by its decomposition, neither join nor change order with anything before it? */
static bool begins_apart(const struct nfc *n, const utf8proc_int32_t *part)
{
    return utf8proc_get_property(part[0])->combining_class == 0 && !(n->joins[part[0]] & JOINS_LAST);
}

size_t nfc_certain(const struct nfc *n, struct text_view text)
{
    for (size_t at = text.n; at-- > 0;) {
        utf8proc_int32_t part[DECOMPOSED_MAX];
        uint32_t point;
        if (((unsigned char)text.at[at] & 0xc0) == 0x80)
            continue;
        int length = utf8_decode(text.at + at, text.n - at, &point), count = decompose(point, part);
        if (length == 0 || count == 0 || !begins_apart(n, part))
            continue;
        bool alone = count == 1 && (uint32_t)part[0] == point && !(n->joins[point] & JOINS_NEXT);
        return alone && at + (size_t)length == text.n ? text.n : at;
    }
    return 0;
}

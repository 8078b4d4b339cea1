/* nfc.h - Unicode normalisation form C (utf8proc), also of a text with an open end.
 *
 * A character can join with the next ones (e and an acute accent), or change order with them (two accents). So the last
 * characters of a text with an open end are not certain.
 */
#ifndef EVP_NFC_H
#define EVP_NFC_H

#include "base/buf.h"
#include "base/err.h"
#include "engine/model/text_view.h"

/* The table of characters that join. NULL: out of memory. */
struct nfc *nfc_new(struct err *err);
void nfc_free(struct nfc *n); // NULL is fine

/* Adds the normal form of valid UTF-8. */
int nfc_add(struct buf *out, struct text_view text, struct err *err) MUST_CHECK;

/* The largest n with NFC(text + more) = NFC(text[0 .. n)) + NFC(text[n ..] + more) for every `more`; 0 when no
 * character is certain. */
size_t nfc_certain(const struct nfc *n, struct text_view text);

#endif

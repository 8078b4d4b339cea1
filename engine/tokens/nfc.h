/* nfc.h - Unicode's normalisation form C (utf8proc), also of a text whose end is open.
 *
 * A character can join with those that follow it (e and an acute accent), or change places with them (two accents). So
 * of an open text the last characters are not certain.
 */
#ifndef EVP_NFC_H
#define EVP_NFC_H

#include "base/buf.h"
#include "base/err.h"
#include "engine/model/text_view.h"

/* What joins with what. NULL: out of memory. */
struct nfc *nfc_new(struct err *err);
void nfc_free(struct nfc *n); // NULL is fine

/* Adds the normal form of valid UTF-8. */
int nfc_add(struct buf *out, struct text_view text, struct err *err) MUST_CHECK;

/* The largest n for which, whatever follows the text, the normal form of all is that of the first n bytes and then that
 * of the rest with what follows. n is 0 when no character is certain. */
size_t nfc_certain(const struct nfc *n, struct text_view text);

#endif

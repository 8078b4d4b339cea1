/* manifest_internal.h - what the files of the manifest share. Not for others. */
#ifndef EVP_MANIFEST_INTERNAL_H
#define EVP_MANIFEST_INTERNAL_H

#include "loader/formats/manifest.h"

/* There, shorter than `room`, without control characters. ERR_FORMAT names the field. */
int field_check_text(const char *field, const char *s, size_t room, struct err *err) MUST_CHECK;

/* Finite, and not below `least`, which is 0 or -HUGE_VAL. */
int field_check_real(const char *field, double v, double least, struct err *err) MUST_CHECK;

/* Not below zero, and not above what JSON says exactly. */
int field_check_bytes(const char *field, int64_t v, struct err *err) MUST_CHECK;

/* What manifest_add() asks of a row by itself; of *m the tiers count. ERR_FORMAT names the field. */
int manifest_check_row(const struct manifest *m, const struct placement *p, struct err *err) MUST_CHECK;

#endif

/* digest.h - SHA-256 (libcrypto) for identity, XXH3-64 (xxHash) for checksums. */
#ifndef EVP_DIGEST_H
#define EVP_DIGEST_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_HEX = 65, XXH3_HEX = 17 }; /* bytes of the text with its NUL */

/* XXH3-64 of n bytes, and the same as 16 lower-case hex digits. */
uint64_t digest_xxh3(const void *bytes, size_t n);
void digest_xxh3_hex(const void *bytes, size_t n, char hex[XXH3_HEX]);

/* The same with a secret seed, without which nobody can choose bytes that collide. */
uint64_t digest_xxh3_seeded(const void *bytes, size_t n, uint64_t seed);

/* Incremental XXH3-64. checksum_end() frees it; hex may be NULL. */
struct checksum;
struct checksum *checksum_new(struct err *err);
void checksum_add(struct checksum *c, const void *bytes, size_t n);
void checksum_end(struct checksum *c, char hex[XXH3_HEX]);

/* Incremental SHA-256. digest_end() frees it; hex may be NULL. */
struct digest;
struct digest *digest_new(struct err *err);
void digest_add(struct digest *d, const void *bytes, size_t n);
void digest_end(struct digest *d, char hex[DIGEST_HEX]);

/* The digest of all bytes so far; more may be added. */
int digest_peek(const struct digest *d, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

/* The digest of all bytes so far and n ids after them; *d is unchanged. */
int digest_peek_tokens(const struct digest *d, const int32_t *ids, size_t n, uint8_t bytes[32],
                       struct err *err) MUST_CHECK;

/* Adds ids as little-endian int32. */
void digest_add_tokens(struct digest *d, const int32_t *ids, size_t n);

/* Adds the bytes of a whole file, which is mapped. */
int digest_add_file(struct digest *d, const char *path, struct err *err) MUST_CHECK;

int digest_sha256(const void *bytes, size_t n, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;
/* Reads the file instead of mapping it: a mapped file would count as memory of the process. */
int digest_file(const char *path, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

/* 64 lower-case hex digits and nothing else. */
bool digest_is_hex(const char *s);

/* n bytes as 2 * n lower-case hex digits with a NUL, and back; the digits are not checked. */
void digest_hex(const uint8_t *bytes, size_t n, char *hex);
void digest_from_hex(const char *hex, uint8_t *bytes, size_t n);

/* token_digest of the formats: SHA-256 over the ids as little-endian int32. */
int digest_tokens(const int32_t *ids, int n, char hex[DIGEST_HEX], struct err *err) MUST_CHECK;

enum { DIGEST_CHUNK = 256 }; /* tokens between two digests of a chain: the chunk of serving caches */

/* prefix_digests of the formats: adds the token_digest of the first 256 ids, of the first 512, and so on up to the
 * largest multiple of 256 that is at most n; 64 hex digits each, without separators. */
int digest_chain(const int32_t *ids, int n, struct buf *out, struct err *err) MUST_CHECK;

#endif

/* digest.c - hides OpenSSL and xxHash: callers see their states under our own names. */
#include "base/digest.h"

#include "base/digest_avx2.h"
#include "base/file.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { DIGEST_BLOCK = 1 << 16 }; // bytes: a block fits the processor's caches

uint64_t digest_xxh3(const void *bytes, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return xxh3_avx2(bytes, n);
#endif
    return XXH3_64bits(bytes, n);
}

uint64_t digest_xxh3_seeded(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

/* Like printf("%016llx"), but fast: small payloads take less time than printf(). */
static void put_hex(uint64_t v, char hex[XXH3_HEX])
{
    XXH64_canonical_t bytes; // big-endian

    XXH64_canonicalFromHash(&bytes, v);
    digest_hex(bytes.digest, sizeof(bytes.digest), hex);
}

void digest_xxh3_hex(const void *bytes, size_t n, char hex[XXH3_HEX])
{
    put_hex(digest_xxh3(bytes, n), hex);
}

/* struct checksum is XXH3_state_t under another name. */
struct checksum *checksum_new(struct err *err)
{
    XXH3_state_t *state = XXH3_createState();

    if (!state || XXH3_64bits_reset(state) != XXH_OK) {
        XXH3_freeState(state);
        err_nomem(err);
        return NULL;
    }
    return (struct checksum *)state;
}

void checksum_add(struct checksum *c, const void *bytes, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        xxh3_add_avx2(c, bytes, n);
        return;
    }
#endif
    XXH3_64bits_update((XXH3_state_t *)c, bytes, n);
}

void checksum_end(struct checksum *c, char hex[XXH3_HEX])
{
    if (c && hex)
        put_hex(XXH3_64bits_digest((const XXH3_state_t *)c), hex);
    XXH3_freeState((XXH3_state_t *)c);
}

/* struct digest is EVP_MD_CTX under another name. */
struct digest *digest_new(struct err *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(ctx);
        err_set(err, ERR_FAIL, "cannot start SHA-256");
        return NULL;
    }
    return (struct digest *)ctx;
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
    EVP_DigestUpdate((EVP_MD_CTX *)d, bytes, n);
}

void digest_hex(const uint8_t *bytes, size_t n, char *hex)
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digit[bytes[i] >> 4];
        hex[2 * i + 1] = digit[bytes[i] & 15];
    }
    hex[2 * n] = '\0';
}

static unsigned hex_value(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10) & 15;
}

void digest_from_hex(const char *hex, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
}

/* The final SHA-256 of a context as hex. */
static bool finish(EVP_MD_CTX *ctx, char hex[DIGEST_HEX])
{
    unsigned char md[32];

    if (EVP_DigestFinal_ex(ctx, md, NULL) != 1)
        return false;
    digest_hex(md, sizeof(md), hex);
    return true;
}

void digest_end(struct digest *d, char hex[DIGEST_HEX])
{
    if (d && hex)
        finish((EVP_MD_CTX *)d, hex);
    EVP_MD_CTX_free((EVP_MD_CTX *)d);
}

int digest_peek(const struct digest *d, char hex[DIGEST_HEX], struct err *err)
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    bool done = copy && EVP_MD_CTX_copy_ex(copy, (const EVP_MD_CTX *)d) == 1 && finish(copy, hex);

    EVP_MD_CTX_free(copy);
    return done ? 0 : err_nomem(err);
}

void digest_add_tokens(struct digest *d, const int32_t *ids, size_t n)
{
    unsigned char le[4 * 1024];

    for (size_t i = 0; i < n;) {
        size_t some = 0;
        for (; some < sizeof(le) && i < n; i++, some += 4) {
            uint32_t u = (uint32_t)ids[i];
            le[some] = (unsigned char)u;
            le[some + 1] = (unsigned char)(u >> 8);
            le[some + 2] = (unsigned char)(u >> 16);
            le[some + 3] = (unsigned char)(u >> 24);
        }
        digest_add(d, le, some);
    }
}

int digest_peek_tokens(const struct digest *d, const int32_t *ids, size_t n, uint8_t bytes[32], struct err *err)
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    bool done = copy && EVP_MD_CTX_copy_ex(copy, (const EVP_MD_CTX *)d) == 1;

    if (done)
        digest_add_tokens((struct digest *)copy, ids, n);
    done = done && EVP_DigestFinal_ex(copy, bytes, NULL) == 1;
    EVP_MD_CTX_free(copy);
    return done ? 0 : err_nomem(err);
}

int digest_sha256(const void *bytes, size_t n, char hex[DIGEST_HEX], struct err *err)
{
    struct digest *d = digest_new(err);

    if (!d)
        return err->code;
    digest_add(d, bytes, n);
    digest_end(d, hex);
    return 0;
}

int digest_add_file(struct digest *d, const char *path, struct err *err)
{
    struct file_map map;

    if (file_map(&map, path, err))
        return err->code;
    digest_add(d, map.at, map.n);
    file_unmap(&map);
    return 0;
}

int digest_file(const char *path, char hex[DIGEST_HEX], struct err *err)
{
    char block[DIGEST_BLOCK];
    struct digest *d = digest_new(err);
    FILE *f = d ? fopen(path, "rb") : NULL;
    int code = d ? 0 : err->code;

    if (d && !f)
        code = err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (f)
        setvbuf(f, NULL, _IONBF, 0);
    for (size_t n = 1; f && n > 0;) {
        n = fread(block, 1, sizeof(block), f);
        digest_add(d, block, n);
    }
    if (f && ferror(f))
        code = err_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (f)
        fclose(f);
    digest_end(d, hex);
    return code;
}

/* No branch per character, for speed: a million rows have two million digests. */
bool digest_is_hex(const char *s)
{
    unsigned char wrong = 0;

    if (strnlen(s, DIGEST_HEX) != DIGEST_HEX - 1)
        return false;
    for (int i = 0; i < DIGEST_HEX - 1; i++)
        wrong |= (unsigned char)(s[i] - '0') > 9 && (unsigned char)(s[i] - 'a') > 5;
    return !wrong;
}

int digest_tokens(const int32_t *ids, int n, char hex[DIGEST_HEX], struct err *err)
{
    struct digest *d = digest_new(err);

    if (!d)
        return err->code;
    digest_add_tokens(d, ids, (size_t)n);
    digest_end(d, hex);
    return 0;
}

int digest_chain(const int32_t *ids, int n, struct buf *out, struct err *err)
{
    char hex[DIGEST_HEX];
    struct digest *d = digest_new(err);
    int code = d ? 0 : err->code;

    for (int at = 0; !code && n - at >= DIGEST_CHUNK; at += DIGEST_CHUNK) {
        digest_add_tokens(d, ids + at, DIGEST_CHUNK);
        code = digest_peek(d, hex, err);
        if (!code)
            buf_adds(out, hex);
    }
    if (!code && buf_failed(out))
        code = err_nomem(err);
    digest_end(d, NULL);
    return code;
}

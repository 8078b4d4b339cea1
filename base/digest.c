#include "base/digest.h"

#include "base/file.h"

#include <openssl/evp.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t digest_xxh3(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

void digest_xxh3_hex(const void *bytes, size_t n, char hex[XXH3_HEX])
{
    snprintf(hex, XXH3_HEX, "%016llx", (unsigned long long)digest_xxh3(bytes, n));
}

/* struct digest is EVP_MD_CTX under another name, so that only this file knows OpenSSL. */
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

void digest_end(struct digest *d, char hex[DIGEST_HEX])
{
    unsigned char md[32];

    if (d && hex) {
        EVP_DigestFinal_ex((EVP_MD_CTX *)d, md, NULL);
        for (int i = 0; i < 32; i++)
            snprintf(hex + 2 * i, 3, "%02x", md[i]);
    }
    EVP_MD_CTX_free((EVP_MD_CTX *)d);
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

int digest_file(const char *path, char hex[DIGEST_HEX], struct err *err)
{
    struct file_map map;

    if (file_map(&map, path, err))
        return err->code;
    int code = digest_sha256(map.at, map.n, hex, err);
    file_unmap(&map);
    return code;
}

int digest_tokens(const int32_t *ids, int n, char hex[DIGEST_HEX], struct err *err)
{
    struct digest *d = digest_new(err);

    if (!d)
        return err->code;
    for (int i = 0; i < n; i++) {
        uint32_t u = (uint32_t)ids[i];
        unsigned char le[4] = { (unsigned char)u, (unsigned char)(u >> 8), (unsigned char)(u >> 16),
                                (unsigned char)(u >> 24) };
        digest_add(d, le, 4);
    }
    digest_end(d, hex);
    return 0;
}

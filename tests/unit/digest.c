/* Digests in pieces agree with digests in one go, wherever the pieces are cut. */
#include "base/digest.h"

#include <criterion/criterion.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

Test(digest, tokens_are_little_endian_and_prefixes_can_be_peeked_at)
{
    static const unsigned char le[] = { 1, 0, 0, 0, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff };
    static const int32_t ids[] = { 1, 0x12345678, -1 };
    char want[DIGEST_HEX], got[DIGEST_HEX];
    struct err err;
    struct digest *d = digest_new(&err);

    for (int n = 1; n <= 3; n++) {
        digest_add_tokens(d, ids + n - 1, 1);
        cr_assert_eq(digest_peek(d, got, &err), 0);
        cr_assert_eq(digest_sha256(le, (size_t)(4 * n), want, &err), 0);
        cr_assert_str_eq(got, want);
        cr_assert_eq(digest_tokens(ids, n, got, &err), 0);
        cr_assert_str_eq(got, want);
    }
    digest_end(d, got);
    cr_assert_str_eq(got, want);
}

/* 3000 ids do not fit the buffer they are turned in. */
Test(digest, of_many_tokens)
{
    static int32_t ids[3000];
    char want[DIGEST_HEX], got[DIGEST_HEX];
    struct err err;
    struct digest *d = digest_new(&err);

    for (int i = 0; i < 3000; i++) {
        ids[i] = 7919 * i;
        digest_add_tokens(d, &ids[i], 1);
    }
    digest_end(d, want);
    cr_assert_eq(digest_tokens(ids, 3000, got, &err), 0);
    cr_assert_str_eq(got, want);
}

/* Each link is the token_digest of the prefix of its length; what is left of a chunk has no link. */
Test(digest, chain_of_prefixes)
{
    static const int lengths[] = { 0, 1, 255, 256, 257, 511, 512, 3000 };
    static int32_t ids[3000];
    char want[DIGEST_HEX];
    struct err err;

    for (int i = 0; i < 3000; i++)
        ids[i] = 7919 * i;
    for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
        struct buf chain = { 0 };
        buf_adds(&chain, "before");
        cr_assert_eq(digest_chain(ids, lengths[l], &chain, &err), 0);
        int links = lengths[l] / 256;
        cr_assert_eq(chain.n, 6 + (size_t)links * 64, "%d ids", lengths[l]);
        for (int i = 0; i < links; i++) {
            cr_assert_eq(digest_tokens(ids, 256 * (i + 1), want, &err), 0);
            cr_assert_arr_eq(chain.at + 6 + 64 * i, want, 64, "link %d of %d ids", i, lengths[l]);
        }
        buf_release(&chain);
    }
}

Test(digest, checksum_in_pieces)
{
    static char bytes[5000];
    char want[XXH3_HEX], got[XXH3_HEX];
    struct err err;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * i);
    digest_xxh3_hex(bytes, sizeof(bytes), want);
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 499) {
        struct checksum *c = checksum_new(&err);
        checksum_add(c, bytes, cut);
        checksum_add(c, bytes + cut, sizeof(bytes) - cut);
        checksum_end(c, got);
        cr_assert_str_eq(got, want);
    }
    digest_xxh3_hex("", 0, want);
    cr_assert_str_eq(want, "2d06800538d394c2"); /* XXH3's own value for nothing */
}

/* xxHash itself, compiled for any processor, has the same sums: of all lengths that it treats differently, in pieces
 * too. */
Test(digest, checksums_are_xxhash_s)
{
    static unsigned char bytes[70000];
    static const size_t lengths[] = { 0, 1, 16, 17, 128, 129, 240, 241, 1024, 1025, 4096, 65537, sizeof(bytes) };
    char want[XXH3_HEX], got[XXH3_HEX];
    struct err err;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * i * 31 >> 3);
    for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
        size_t n = lengths[l];
        snprintf(want, sizeof(want), "%016llx", (unsigned long long)XXH3_64bits(bytes, n));
        digest_xxh3_hex(bytes, n, got);
        cr_assert_str_eq(got, want, "%zu bytes", n);
        for (size_t piece = 1; piece <= 5000; piece *= 7) {
            struct checksum *c = checksum_new(&err);
            for (size_t at = 0; at < n; at += piece)
                checksum_add(c, bytes + at, n - at < piece ? n - at : piece);
            checksum_end(c, got);
            cr_assert_str_eq(got, want, "%zu bytes in pieces of %zu", n, piece);
        }
    }
}

Test(digest, hex_and_back)
{
    static const uint8_t bytes[] = { 0x00, 0x09, 0x9a, 0xaf, 0xf0, 0xff };
    uint8_t back[sizeof(bytes)];
    char hex[2 * sizeof(bytes) + 1];

    digest_hex(bytes, sizeof(bytes), hex);
    cr_assert_str_eq(hex, "00099aaff0ff");
    digest_from_hex(hex, back, sizeof(back));
    cr_assert_arr_eq(back, bytes, sizeof(bytes));
}

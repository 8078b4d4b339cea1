/* manifest_packed.h - the rows of a large manifest once more, packed: MANIFEST.packed beside MANIFEST. Numbers are as
 * processors hold them, so reading a million rows takes a quarter of the time that parsing them does. The manifest is
 * what counts. Its packed rows are used where they say when its file was last written, and how long it is; they carry a
 * checksum of all its bytes, too, and are checked like rows that are parsed. Where they are missing, or were made of a
 * manifest before, or this one was copied or edited, it is parsed.
 *
 *     pieces     struct packed_piece, then n_bytes of rows; the last one has no rows
 *     row        struct packed_row; id, config, payload, each with its NUL; struct packed_variant for each variant
 *     trailer    struct packed_trailer
 *
 * Little-endian, and nothing is aligned. A machine of another byte order takes no packed rows for its own.
 */
#ifndef EVP_MANIFEST_PACKED_H
#define EVP_MANIFEST_PACKED_H

#include "loader/formats/manifest_internal.h"

struct packed_piece {
    uint32_t n_rows, n_bytes;
    uint64_t checksum; // XXH3-64 of the n_bytes
};

enum { PACKED_VARIANTS_NONE = 0xffff, PACKED_PIN_NONE = -2 };

struct packed_row {
    int64_t n_tokens, bytes, kv_bytes;
    double quality, quality_test, ttft_s, utility, frequency, quality_sd;
    double prefill_s, question_s, prefill_sd_s, question_sd_s, min_quality; // 0 without variants
    uint8_t tokens[32];                                                     // the token digest
    uint16_t n_id, n_config, n_payload;                                     // bytes, with the NUL; n_payload 0: none
    uint16_t n_variants;                                                    // PACKED_VARIANTS_NONE: not carried
    int16_t tier, pin; // pin: -1: to recompute; PACKED_PIN_NONE: no pin
    uint8_t operation, unmeasured;
    uint16_t reserved;
};

struct packed_variant {
    int64_t bytes;
    double quality, decompress_s; // decompress_s NAN: not known
    uint32_t config, reserved;    // config: a number in the list of the manifest's header
};

struct packed_of {
    int64_t n_bytes, written_ns; // since 1970
};

struct packed_trailer {
    char magic[8];               // PACKED_MAGIC
    uint64_t order;              // PACKED_ORDER
    int64_t n_rows;              // of the manifest
    struct packed_of of;         // its file
    char manifest[XXH3_HEX + 7]; // checksum of its bytes
    uint64_t checksum;           // XXH3-64 of the trailer up to here
};

#define PACKED_MAGIC "evppack1"
#define PACKED_ORDER 0x0102030405060708u

/* Adds a row that was checked. configs: the header's list. ERR_FAIL: it lacks a config. */
int packed_add(struct buf *to, const struct placement *row, const struct tiers *tiers, const struct map *configs,
               struct err *err) MUST_CHECK;

struct packed_bytes {
    const char *at;
    size_t n;
    uint32_t n_rows;
};

/* Adds the rows of a piece to a part, checked. ERR_FORMAT: there are not just n_rows good ones. */
int packed_rows(struct manifest_part *part, const struct manifest *m, const struct packed_bytes *piece,
                struct err *err) MUST_CHECK;

/* What a manifest's file is now. False: not known. */
bool packed_file(int fd, struct packed_of *of);

/* ---- writing: packed_create(), packed_put() for each piece, packed_finish() once the manifest is there ---- */

struct packed_out {
    struct file_out file;
    struct checksum *manifest; // of its bytes so far
    int fd;                    // of the manifest, whoever else has put one in its place
    struct packed_trailer trailer;
};

/* header: the manifest's first line with its line end; file: the manifest's. */
int packed_create(struct packed_out *out, const char *path, const struct buf *header, FILE *file,
                  struct err *err) MUST_CHECK;
int packed_put(struct packed_out *out, const struct buf *rows, int n, struct err *err) MUST_CHECK;
int packed_finish(struct packed_out *out, struct err *err) MUST_CHECK; // releases *out, also when it fails
void packed_abort(struct packed_out *out);

/* ---- reading ---- */

struct packed_in {
    FILE *f;
    struct packed_trailer trailer;
};

/* Opens the packed rows of a manifest that is open, and whose header was read. False: there are none that are its. */
bool packed_open(struct packed_in *in, const struct rows_in *manifest, const char *path);
void packed_close(struct packed_in *in);

/* Reads all rows; the rest of the manifest goes into its digest, and is compared with the trailer's checksum. */
int packed_read(struct packed_in *in, struct rows_in *manifest, struct manifest_reading *r, struct err *err) MUST_CHECK;

#endif

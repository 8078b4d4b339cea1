/* manifest_packed.c - packed rows made and taken apart, and written to their file. */
#include "loader/formats/manifest_packed.h"

#include "base/unconst.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct packed_row) == 160 && sizeof(struct packed_variant) == 32, "no gaps");
_Static_assert(sizeof(struct packed_piece) == 16 && sizeof(struct packed_trailer) == 72, "no gaps");

/* ---- a row is added ---------------------------------------------------------------- */

static int pin_of(const struct variants *f, const struct tiers *tiers)
{
    return f->pin ? tiers_find(tiers, f->pin) : PACKED_PIN_NONE; /* to recompute is no tier, -1 */
}

static int add_variant(struct buf *to, const struct variant_info *variant, const struct map *configs, struct err *err)
{
    int config = map_find(configs, variant->config, strlen(variant->config));
    struct packed_variant v = { variant->bytes, variant->quality, variant->decompress_s, (uint32_t)config, 0 };

    if (config < 0)
        return err_set(err, ERR_FAIL, "config '%.80s' is not in the header", variant->config);
    buf_add(to, &v, sizeof(v));
    return 0;
}

int packed_add(struct buf *to, const struct placement *row, const struct tiers *tiers, const struct map *configs,
               struct err *err)
{
    const struct variants *f = row->variants;
    struct packed_row r = { .n_tokens = row->n_tokens,
                            .bytes = row->bytes,
                            .kv_bytes = row->kv_bytes,
                            .quality = row->quality,
                            .quality_test = row->quality_test,
                            .ttft_s = row->ttft_s,
                            .utility = row->utility,
                            .frequency = row->frequency,
                            .quality_sd = row->quality_sd,
                            .n_id = (uint16_t)(strlen(row->id) + 1),
                            .n_config = (uint16_t)(strlen(row->config) + 1),
                            .n_payload = (uint16_t)(row->payload ? strlen(row->payload) + 1 : 0),
                            .n_variants = f ? (uint16_t)f->n : PACKED_VARIANTS_NONE,
                            .tier = (int16_t)row->tier,
                            .pin = PACKED_PIN_NONE,
                            .operation = (uint8_t)row->operation,
                            .unmeasured = row->unmeasured };
    int code = 0;

    digest_from_hex(row->token_digest, r.tokens, sizeof(r.tokens));
    if (f) {
        r.prefill_s = f->prefill_s;
        r.question_s = f->question_s;
        r.prefill_sd_s = f->prefill_sd_s;
        r.question_sd_s = f->question_sd_s;
        r.min_quality = f->min_quality;
        r.pin = (int16_t)pin_of(f, tiers);
    }
    buf_add(to, &r, sizeof(r));
    buf_add(to, row->id, r.n_id);
    buf_add(to, row->config, r.n_config);
    buf_add(to, row->payload ? row->payload : "", r.n_payload);
    for (int i = 0; f && i < f->n && !code; i++)
        code = add_variant(to, &f->at[i], configs, err);
    return code;
}

/* ---- a row is read ------------------------------------------------------------------ */

/* The next n bytes, or NULL. */
static const char *next(struct packed_bytes *from, size_t n)
{
    const char *at = from->at;

    if (from->n < n)
        return NULL;
    from->at += n;
    from->n -= n;
    return at;
}

/* The next text, of n bytes with its NUL; NULL: it is none. */
static const char *next_text(struct packed_bytes *from, size_t n)
{
    const char *at = next(from, n);

    return at && n && memchr(at, '\0', n) == at + n - 1 ? at : NULL;
}

static bool read_variants(struct manifest_row *to, const struct packed_row *r, const struct manifest *m,
                          struct packed_bytes *from)
{
    bool pinned = r->pin != PACKED_PIN_NONE;

    if (r->n_variants > VARIANTS_MAX || (pinned && (r->pin < -1 || r->pin >= m->tiers.n)))
        return false;
    to->variants = (struct variants){ .at = to->variant,
                                      .n = r->n_variants,
                                      .prefill_s = r->prefill_s,
                                      .question_s = r->question_s,
                                      .min_quality = r->min_quality,
                                      .pin = !pinned      ? NULL
                                             : r->pin < 0 ? "recompute"
                                                          : m->tiers.at[r->pin].name,
                                      .prefill_sd_s = r->prefill_sd_s,
                                      .question_sd_s = r->question_sd_s };
    to->placement.variants = &to->variants;
    for (int i = 0; i < to->variants.n; i++) {
        struct packed_variant v;
        const char *at = next(from, sizeof(v));
        if (!at)
            return false;
        memcpy(&v, at, sizeof(v));
        if (v.config >= (uint32_t)m->list.n)
            return false;
        to->variant[i] = (struct variant_info){ m->list.at[v.config], v.bytes, v.quality, v.decompress_s };
    }
    return true;
}

/* digest: (DIGEST_HEX) for the row's. */
static bool read_row(struct manifest_row *to, char *digest, const struct manifest *m, struct packed_bytes *from)
{
    struct packed_row r;
    const char *at = next(from, sizeof(r));

    if (!at)
        return false;
    memcpy(&r, at, sizeof(r));
    digest_hex(r.tokens, sizeof(r.tokens), digest);
    to->placement = (struct placement){ .id = next_text(from, r.n_id),
                                        .token_digest = digest,
                                        .config = next_text(from, r.n_config),
                                        .payload = r.n_payload ? next_text(from, r.n_payload) : NULL,
                                        .tier = r.tier,
                                        .n_tokens = r.n_tokens,
                                        .bytes = r.bytes,
                                        .kv_bytes = r.kv_bytes,
                                        .quality = r.quality,
                                        .quality_test = r.quality_test,
                                        .ttft_s = r.ttft_s,
                                        .utility = r.utility,
                                        .frequency = r.frequency,
                                        .operation = (enum operation)r.operation,
                                        .quality_sd = r.quality_sd,
                                        .unmeasured = r.unmeasured };
    return to->placement.id && to->placement.config && (!r.n_payload || to->placement.payload) &&
           r.operation < N_OPERATIONS && !isinf(r.quality_test) &&
           (r.n_variants == PACKED_VARIANTS_NONE || read_variants(to, &r, m, from));
}

int packed_rows(struct manifest_part *part, const struct manifest *m, const struct packed_bytes *piece, struct err *err)
{
    struct packed_bytes from = *piece;
    char digest[DIGEST_HEX];
    struct manifest_row row;

    for (uint32_t i = 0; i < piece->n_rows; i++) {
        if (!read_row(&row, digest, m, &from))
            return err_set(err, ERR_FORMAT, "a packed row is damaged");
        if (manifest_part_add(part, m, &row, err))
            return err->code;
    }
    return from.n ? err_set(err, ERR_FORMAT, "packed rows are followed by something else") : 0;
}

/* ---- the file ------------------------------------------------------------------------ */

static int put(struct packed_out *out, const void *bytes, size_t n, struct err *err)
{
    if (fwrite(bytes, 1, n, out->file.f) == n)
        return 0;
    return err_set(err, ERR_IO, "cannot write '%s': %s", out->file.path, strerror(errno));
}

bool packed_file(int fd, struct packed_of *of)
{
    struct stat st;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return false;
    *of = (struct packed_of){ st.st_size, st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec };
    return true;
}

int packed_create(struct packed_out *out, const char *path, const struct buf *header, FILE *file, struct err *err)
{
    struct buf name = { 0 };

    *out = (struct packed_out){ .trailer = { .magic = PACKED_MAGIC, .order = PACKED_ORDER },
                                .fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) };
    if (out->fd < 0)
        return err_set(err, ERR_IO, "cannot keep '%s' open: %s", path, strerror(errno));
    buf_printf(&name, "%s.packed", path);
    out->manifest = checksum_new(err);
    int code = !out->manifest || buf_failed(&name) ? err_nomem(err) : file_create(&out->file, buf_str(&name), err);
    buf_release(&name);
    if (code) {
        packed_abort(out);
        return code;
    }
    checksum_add(out->manifest, header->at, header->n);
    return 0;
}

int packed_put(struct packed_out *out, const struct buf *rows, int n, struct err *err)
{
    struct packed_piece piece = { (uint32_t)n, (uint32_t)rows->n, digest_xxh3(rows->at, rows->n) };

    if (buf_failed(rows) || rows->n > UINT32_MAX)
        return err_nomem(err);
    out->trailer.n_rows += n;
    return put(out, &piece, sizeof(piece), err) ? err->code : put(out, rows->at, rows->n, err);
}

int packed_finish(struct packed_out *out, struct err *err)
{
    struct packed_trailer *t = &out->trailer;

    checksum_end(out->manifest, t->manifest);
    out->manifest = NULL;
    if (!packed_file(out->fd, &t->of))
        t->of = (struct packed_of){ 0 }; // is never used
    t->checksum = digest_xxh3(t, offsetof(struct packed_trailer, checksum));
    close(out->fd);
    out->fd = -1;
    if (!put(out, &(struct packed_piece){ 0 }, sizeof(struct packed_piece), err) && !put(out, t, sizeof(*t), err))
        return file_commit(&out->file, err);
    packed_abort(out);
    return err->code;
}

void packed_abort(struct packed_out *out)
{
    checksum_end(out->manifest, NULL);
    file_abort(&out->file);
    if (out->fd >= 0)
        close(out->fd);
    *out = (struct packed_out){ .fd = -1 };
}

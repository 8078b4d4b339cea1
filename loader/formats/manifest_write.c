/* manifest_write.c - a manifest to a stream. Several threads make pieces of 512 rows, and one writes the pieces in
 * their order, so neither the bytes nor the first failure depend on the number of threads. Threads wait for each other
 * only after 64 pieces: a thread that shares its core with another process would hold up all others at every wait. */
#include "loader/formats/manifest.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 512, ROUND = 64 }; // rows in a piece: a quarter of a megabyte of text; pieces between two waits

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

static void header_members(const void *arg, struct json_out *w)
{
    const struct manifest *m = arg;

    json_put_text(w, "model_digest", or_null(m->model_digest));
    json_put_real(w, "alpha", m->alpha);
    if (m->slo_weight > 0) {
        json_put_real(w, "slo_ttft_s", m->slo_ttft_s);
        json_put_real(w, "slo_weight", m->slo_weight);
    }
    tiers_to_json(&m->tiers, w, "tiers");
    json_put_text(w, "solver", m->solver);
    json_put_real(w, "objective", m->objective);
    json_put_real(w, "upper_bound", m->upper_bound);
    json_put_real(w, "gap", m->gap);
    json_put_real(w, "gain_gap", m->gain_gap);
    json_put_bool(w, "optimal", m->optimal);
    json_begin(w, "prices", '[');
    for (int t = 0; t < m->tiers.n; t++)
        json_put_real(w, NULL, m->price[t]);
    json_end(w, ']');
    json_put_real(w, "move_cost", m->move_cost);
    json_put_real(w, "move_price", m->move_price);
    if (m->max_move == INT64_MAX)
        json_put_null(w, "max_move");
    else
        json_put_int(w, "max_move", m->max_move);
    if (m->predicted)
        json_put_text(w, "qualities", "predicted");
    if (m->expected_loss > 0)
        json_put_real(w, "expected_loss", m->expected_loss);
    if (m->min_quality > 0)
        json_put_real(w, "min_quality", m->min_quality);
    if (m->online) {
        json_begin(w, "configs", '[');
        for (int i = 0; i < m->configs.n; i++)
            json_put_text(w, NULL, m->configs.at[i].key);
        json_end(w, ']');
    }
    json_put_text(w, "previous", or_null(m->previous));
    json_put_text(w, "table_digest", or_null(m->table_digest));
    json_begin(w, "totals", '[');
    for (int i = 0; i < m->n_totals; i++) {
        json_begin(w, NULL, '{');
        json_put_text(w, "name", m->total[i].name);
        json_put_real(w, "utility", m->total[i].utility);
        json_put_real(w, "ttft_s", m->total[i].ttft_s);
        json_put_real(w, "quality", m->total[i].quality);
        json_put_real(w, "quality_test", m->total[i].quality_test);
        json_end(w, '}');
    }
    json_end(w, ']');
}

struct manifest_piece {
    const struct manifest *m;
    int n; // rows
    struct buf lines, name;
    struct err err; // code 0: none
};

int manifest_put(struct manifest_piece *piece, const struct placement *row, struct err *err)
{
    struct placement p = *row;

    if (p.tier >= 0 && !p.payload) {
        manifest_put_payload_name(&piece->name, p.id, p.token_digest, p.config);
        p.payload = buf_str(&piece->name);
    }
    if (manifest_check_row(piece->m, &p, err))
        return err_wrap(err, "context '%s'", p.id);
    struct json_out w = rows_open_line(&piece->lines);
    json_put_text(&w, "id", p.id);
    json_put_text(&w, "token_digest", p.token_digest);
    json_put_int(&w, "n_tokens", p.n_tokens);
    json_put_text(&w, "config", p.config);
    json_put_text(&w, "tier", p.tier < 0 ? "recompute" : piece->m->tiers.at[p.tier].name);
    json_put_int(&w, "bytes", p.bytes);
    json_put_int(&w, "kv_bytes", p.kv_bytes);
    json_put_real(&w, "quality", p.quality);
    if (p.quality_sd > 0)
        json_put_real(&w, "quality_sd", p.quality_sd);
    if (p.unmeasured)
        json_put_int(&w, "measured", 0);
    json_put_real(&w, "quality_test", p.quality_test);
    json_put_real(&w, "ttft_s", p.ttft_s);
    json_put_real(&w, "utility", p.utility);
    json_put_real(&w, "frequency", p.frequency);
    json_put_text(&w, "operation", operation_name(p.operation));
    json_put_text(&w, "payload", p.payload);
    if (p.variants && variants_to_json(p.variants, &piece->m->configs, &w, err))
        return err->code;
    rows_close_line(&w);
    return buf_failed(&piece->name) ? err_nomem(err) : 0;
}

static void make_piece(struct manifest_piece *piece, const struct manifest_rows *rows, int first)
{
    piece->n = rows->n - first < PIECE ? rows->n - first : PIECE;
    buf_clear(&piece->lines);
    piece->err.code = rows->put(rows->arg, piece, first, piece->n, &piece->err);
}

/* Writes the rows from number `first` on, as many as ROUND pieces hold. */
static int write_round(struct rows_out *out, struct manifest_piece *piece, const struct manifest_rows *rows, int first,
                       struct err *err)
{
    int n = (rows->n - first + PIECE - 1) / PIECE;

    n = n < ROUND ? n : ROUND;
#pragma omp parallel for schedule(dynamic) if (n > 1)
    for (int k = 0; k < n; k++)
        make_piece(&piece[k], rows, first + k * PIECE);
    for (int k = 0; k < n; k++) {
        if (piece[k].err.code) {
            *err = piece[k].err;
            return err->code;
        }
        if (rows_put_lines(out, &piece[k].lines, piece[k].n, err))
            return err->code;
    }
    return 0;
}

static int write_rows(struct rows_out *out, const struct manifest *m, const struct manifest_rows *rows, struct err *err)
{
    struct manifest_piece *piece = calloc(ROUND, sizeof(*piece));
    int code = piece ? 0 : err_nomem(err);

    for (int k = 0; k < ROUND && !code; k++)
        piece[k].m = m;
    for (int first = 0; first < rows->n && !code; first += ROUND * PIECE)
        code = write_round(out, piece, rows, first, err);
    for (int k = 0; k < ROUND && piece; k++) {
        buf_release(&piece[k].lines);
        buf_release(&piece[k].name);
    }
    free(piece);
    return code;
}

int manifest_write_rows(const struct manifest *m, const struct manifest_rows *rows, const char *path,
                        struct rows_made made, struct err *err)
{
    struct rows_out out;

    made.kind = "manifest";
    made.version = m->online ? ROWS_MANIFEST_VERSION : ROWS_VERSION;
    made.more = header_members;
    made.arg = m;
    if (rows_create(&out, path, &made, err))
        return err->code;
    if (!write_rows(&out, m, rows, err))
        return rows_finish(&out, err);
    rows_abort(&out);
    return err->code;
}

/* Puts the rows that a manifest has in memory. */
static int put_own(const void *arg, struct manifest_piece *piece, int first, int n, struct err *err)
{
    const struct manifest *m = arg;

    for (int i = first; i < first + n; i++)
        if (manifest_put(piece, &m->at[i], err))
            return err->code;
    return 0;
}

int manifest_write(const struct manifest *m, const char *path, struct rows_made made, struct err *err)
{
    return manifest_write_rows(m, &(struct manifest_rows){ m->n, put_own, m }, path, made, err);
}

/* manifest_write.c - a manifest to a stream. Several threads make pieces of 512 rows, in rounds of 32; one of them
 * writes the pieces of the round before in their order, so neither the bytes nor the first failure depend on the number
 * of threads. They wait for each other only after a round: a thread that shares its core with another process would
 * hold up all others at every wait. */
#include "loader/formats/manifest_internal.h"

#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 512, ROUND = 32 }; // rows in a piece: a quarter of a megabyte of text; pieces between two waits

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

struct round {
    struct manifest_piece piece[ROUND];
    int n; // pieces
};

struct writing {
    struct rows_out *out;
    const struct manifest_rows *rows;
    struct round *made, *before; // from row `first` on; what is written meanwhile
    int first;
    struct err err; // code 0: none
};

static void write_round(struct writing *w)
{
    struct round *r = w->before;

    for (int k = 0; k < r->n; k++) {
        w->err = r->piece[k].err;
        if (w->err.code || rows_put_lines(w->out, &r->piece[k].lines, r->piece[k].n, &w->err))
            return;
    }
}

static void write_or_make(void *arg, int i)
{
    struct writing *w = arg;

    if (i == 0)
        write_round(w);
    else
        make_piece(&w->made->piece[i - 1], w->rows, w->first + (i - 1) * PIECE);
}

static void write_rounds(struct writing *w)
{
    for (w->first = 0; !w->err.code && (w->first < w->rows->n || w->before->n); w->first += ROUND * PIECE) {
        int left = w->first < w->rows->n ? w->rows->n - w->first : 0, n = (left + PIECE - 1) / PIECE;
        struct round *now = w->made;
        now->n = n < ROUND ? n : ROUND;
        parallel_do(now->n > 1 ? parallel_threads() : 1, 1 + now->n, write_or_make, w);
        w->made = w->before;
        w->before = now;
    }
}

static int write_rows(struct rows_out *out, const struct manifest *m, const struct manifest_rows *rows, struct err *err)
{
    struct round *round = calloc(2, sizeof(*round));
    struct writing w = { .out = out, .rows = rows, .made = round, .before = round + 1 };

    if (!round)
        return err_nomem(err);
    for (int k = 0; k < 2 * ROUND; k++)
        round[k / ROUND].piece[k % ROUND].m = m;
    write_rounds(&w);
    for (int k = 0; k < 2 * ROUND; k++) {
        buf_release(&round[k / ROUND].piece[k % ROUND].lines);
        buf_release(&round[k / ROUND].piece[k % ROUND].name);
    }
    free(round);
    *err = w.err.code ? w.err : *err;
    return w.err.code;
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
    if (!write_rows(&out, m, rows, err) && !rows_finish(&out, err))
        return 0;
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

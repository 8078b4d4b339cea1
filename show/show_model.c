/* show_model.c - models, embedders, payloads and safetensors files of any origin; the token ids of texts. Opening a
 * model maps it; weights are not loaded. */
#include "base/file.h"
#include "show/model_say.h"
#include "show/show.h"
#include "embed/wordpiece.h"
#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"
#include "methods/method.h"
#include "variants/packed_payload.h"
#include "variants/sizes.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "49152 x 576" */
static const char *shape_text(char out[128], const int64_t *dim, int n)
{
    size_t at = 0;

    snprintf(out, 128, "scalar");
    for (int i = 0; i < n && at < 100; i++)
        at += (size_t)snprintf(out + at, 128 - at, i ? " x %lld" : "%lld", (long long)dim[i]);
    return out;
}

static const char *const tensor_columns[] = { "tensor", "type", "shape", "stored_bytes" };

/* ---- models ------------------------------------------------------------ */

static void put_rope(struct sheet *s, const struct model_config *c)
{
    if (c->rotary != c->head_dim)
        sheet_int(s, "rotated_columns", c->rotary);
    sheet_real(s, "rope_base", c->rope_theta, 0);
    sheet_text(s, "rope_scaling", rope_scaling_name(c->rope_scaling));
    if (c->rope_scaling != ROPE_PLAIN)
        sheet_real(s, "rope_factor", c->rope_factor, 2);
}

static void put_mlp(struct sheet *s, const struct model_config *c)
{
    if (c->n_experts == 0) {
        sheet_int(s, "feed_forward", c->d_ff);
        return;
    }
    sheet_int(s, "n_experts", c->n_experts);
    sheet_int(s, "n_experts_used", c->n_experts_used);
    sheet_int(s, "expert_feed_forward", c->expert_ff);
}

static void put_model(struct sheet *s, const struct model *m, const char *digest)
{
    const struct model_config *c = model_config(m);
    const struct kv_shape kv = model_kv_shape(c, DTYPE_F32);
    int64_t bytes = 0;
    char shape[128];

    for (int i = 0; i < model_n_tensors(m); i++)
        bytes += (int64_t)model_tensor(m, i)->bytes;
    sheet_text(s, "name", c->name);
    sheet_text(s, "architecture", c->arch);
    sheet_int(s, "n_layers", c->n_layers);
    sheet_int(s, "width", c->d_model);
    sheet_int(s, "n_heads", c->n_heads);
    sheet_int(s, "n_kv_heads", c->n_kv_heads);
    sheet_int(s, "head_width", c->head_dim);
    put_mlp(s, c);
    sheet_int(s, "vocabulary", c->n_vocab);
    sheet_int(s, "max_tokens", c->max_tokens);
    if (kv.n_windowed > 0) {
        sheet_int(s, "layers_window", kv.n_windowed);
        sheet_int(s, "sliding_window", c->window);
    }
    put_rope(s, c);
    sheet_bytes(s, "weights_bytes", bytes);
    sheet_bytes(s, "kv_per_token_bytes", kv.n_layers * kv.n_kv_heads * kv_pair_bytes(&kv));
    if (kv.n_windowed > 0)
        sheet_bytes(s, "kv_constant_bytes", kv_window_pairs(&kv, kv.window) * kv_pair_bytes(&kv));
    sheet_text(s, "model_digest", digest);
    if (model_n_left_out(m) > 0)
        sheet_int(s, "tensors_of_pictures_left_out", model_n_left_out(m));
    sheet_table(s, "tensors", tensor_columns, 4);
    for (int i = 0; i < model_n_tensors(m); i++) {
        const struct tensor *t = model_tensor(m, i);
        sheet_text(s, NULL, t->name);
        sheet_text(s, NULL, weight_type_name(t->type));
        sheet_text(s, NULL, shape_text(shape, t->dim, t->n_dims));
        sheet_bytes(s, NULL, (int64_t)t->bytes);
    }
    sheet_table_end(s);
}

int show_model(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    bool config = !file_is_dir(path) && strcmp(file_name(path), "config.json") == 0;
    struct model *m = config ? NULL : model_open(path, err);
    char digest[DIGEST_HEX];

    if (config || (!m && depth == SHOW_SUMMARY && (err->code == ERR_IO || strstr(err->msg, "not supported"))))
        return show_shape(s, path, err);
    if (!m)
        return err->code;
    int code = model_digest(m, digest, err);
    struct tokenizer *t = code ? NULL : tokenizer_open(m, err);
    model_say_date(path, t);
    if (!t && !code && depth == SHOW_CHECK)
        code = err->code;
    tokenizer_free(t);
    if (!code)
        put_model(s, m, digest);
    model_close(m);
    return code;
}

/* ---- safetensors, payloads, the embedder ------------------------------- */

static void put_tensors(struct sheet *s, const struct safetensors *st)
{
    char shape[128];

    sheet_table(s, "tensors", tensor_columns, 4);
    for (int i = 0; i < st->n; i++) {
        const struct st_tensor *t = &st->tensor[i];
        sheet_text(s, NULL, t->name);
        sheet_text(s, NULL, st_type_name(t->type));
        sheet_text(s, NULL, shape_text(shape, t->dim, t->n_dims));
        sheet_bytes(s, NULL, (int64_t)t->bytes);
    }
    sheet_table_end(s);
}

int show_safetensors(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct safetensors st;

    (void)depth; /* opening checks everything */
    if (safetensors_open(&st, path, err))
        return err->code;
    const struct json *meta = json_get(st.header, "__metadata__");
    for (const struct json *m = json_first(meta); m; m = json_next(m))
        sheet_text(s, json_name(m), json_text(m));
    sheet_int(s, "n_tensors", st.n);
    put_tensors(s, &st);
    safetensors_close(&st);
    return 0;
}

/* The fewest and the most tokens kept by a head, over a range of layers, and by all their heads together. */
struct kept_range {
    int min, max;
    int64_t sum;
};

static struct kept_range kept_of(const struct packed_payload *p, int first_layer, int n_layers)
{
    struct kept_range r = { INT_MAX, 0, 0 };
    int n[PAYLOAD_HEADS_MAX];

    for (int l = first_layer; l < first_layer + n_layers; l++) { // by their places in caches
        packed_payload_lengths(p, l, n);
        for (int g = 0; g < p->shape.n_kv_heads; g++) {
            r.min = n[g] < r.min ? n[g] : r.min;
            r.max = n[g] > r.max ? n[g] : r.max;
            r.sum += n[g];
        }
    }
    return r;
}

/* The share of the kept rows that are packed, where others stay whole. */
static void put_packed(struct sheet *s, const struct packed_payload *p, int n_kept)
{
    double whole = 0;

    if (!p->config.pack || !p->config.pack->whole)
        return;
    for (int l = 0; l < p->shape.n_layers; l++)
        whole += packed_payload_whole(p, l);
    sheet_real(s, "packed_frac", 1 - whole / p->shape.n_layers / n_kept, 4);
}

/* One number if all heads of all layers keep the same; otherwise a range, and put_layers() adds a table. */
static void put_kept(struct sheet *s, const struct packed_payload *p)
{
    struct kept_range all = kept_of(p, 0, p->shape.n_layers > 0 ? p->shape.n_layers : p->shape.n_windowed);

    if (all.min == all.max) {
        sheet_int(s, "n_kept", all.max);
        put_packed(s, p, all.max);
        return;
    }
    sheet_int(s, "n_kept_min", all.min);
    sheet_int(s, "n_kept_max", all.max);
    int64_t windows = kv_window_pairs(&p->shape, p->file.n_tokens);
    sheet_real(s, "keep_frac", (double)(all.sum + windows) / (double)kv_pairs(&p->shape, p->file.n_tokens), 4);
}

static void put_windows(struct sheet *s, const struct packed_payload *p)
{
    if (p->shape.n_windowed == 0)
        return;
    sheet_int(s, "layers_window", p->shape.n_windowed);
    sheet_int(s, "sliding_window", p->shape.window);
}

static void put_layers(struct sheet *s, const struct packed_payload *p)
{
    static const char *const columns[] = { "layer", "n_kept_min", "n_kept_max", "n_kept_mean" };
    struct kept_range all = kept_of(p, 0, p->shape.n_layers > 0 ? p->shape.n_layers : p->shape.n_windowed);

    if (all.min == all.max)
        return;
    sheet_table(s, "layers", columns, 4);
    for (int l = 0; l < kv_all_layers(&p->shape); l++) {
        struct kept_range r = kept_of(p, kv_place(&p->shape, l), 1);
        sheet_int(s, NULL, l);
        sheet_int(s, NULL, r.min);
        sheet_int(s, NULL, r.max);
        sheet_int(s, NULL, r.sum / p->shape.n_kv_heads);
    }
    sheet_table_end(s);
}

/* What a quantiser's numbers take, and what it loses in each layer. */
static int put_quantised(struct sheet *s, const struct packed_payload *p, struct err *err)
{
    static const char *const columns[] = { "layer", "k_error", "v_error" };
    int64_t windows = kv_window_pairs(&p->shape, p->file.n_tokens) * kv_pair_bytes(&p->shape);
    double full = (double)kv_bytes(&p->shape, p->file.n_tokens);
    double numbers = (full * config_keep_frac(&p->config, &p->shape, p->file.n_tokens) - (double)windows) / 2;

    if (!p->config.stage[METHOD_QUANTISE].method || p->shape.n_layers == 0)
        return 0;
    sheet_real(s, "bits_per_number", 8 * (double)(p->bytes - windows) / numbers, 2);
    if (!p->file.origin.errors)
        return 0;
    double *error = calloc(2 * (size_t)p->shape.n_layers + 1, sizeof(*error));
    if (!error)
        return err_nomem(err);
    int code = payload_errors_parse(error, p->shape.n_layers, p->file.origin.errors, err);
    if (!code) {
        sheet_table(s, "errors", columns, 3);
        for (int l = 0; l < p->shape.n_layers; l++) {
            sheet_int(s, NULL, kv_number(&p->shape, l));
            sheet_real(s, NULL, error[2 * l], 4);
            sheet_real(s, NULL, error[2 * l + 1], 4);
        }
        sheet_table_end(s);
    }
    free(error);
    return code;
}

/* The model and program that made a payload, as it says. */
static void put_origin(struct sheet *s, const struct packed_payload *p)
{
    const struct payload_origin *o = &p->file.origin;
    const struct payload_cache *c = &p->cache;

    if (o->producer)
        sheet_text(s, "producer", o->producer);
    if (o->model_name)
        sheet_text(s, "model_name", o->model_name);
    if (!o->cache)
        return;
    sheet_text(s, "computed_in", dtype_name(c->shape.dtype));
    if (*c->model_dtype)
        sheet_text(s, "model_dtype", c->model_dtype);
    sheet_int(s, "n_layers", kv_all_layers(&c->shape));
    sheet_int(s, "n_heads", c->shape.n_heads);
    sheet_int(s, "n_kv_heads", c->shape.n_kv_heads);
    sheet_int(s, "head_width", c->shape.head_dim);
    sheet_int(s, "rotated_columns", c->rope.dims);
    sheet_real(s, "rope_base", c->rope.theta, 0);
    sheet_text(s, "rope_scaling", c->rope.scaling);
    if (c->rope.factor > 0)
        sheet_real(s, "rope_factor", c->rope.factor, 2);
}

int show_payload(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct packed_payload p;

    if (packed_payload_open(&p, path, depth == SHOW_CHECK ? PAYLOAD_WHOLE : PAYLOAD_HEADER, err))
        return err->code;
    int64_t full = kv_bytes(&p.shape, p.file.n_tokens);
    sheet_text(s, "config", p.config.name);
    sheet_int(s, "n_tokens", p.file.n_tokens);
    put_kept(s, &p);
    put_windows(s, &p);
    sheet_bytes(s, "stored_bytes", p.bytes);
    sheet_times(s, "size_x", p.bytes > 0 ? (double)full / (double)p.bytes : (double)NAN);
    sheet_text(s, "model_digest", p.file.model_digest);
    sheet_text(s, "token_digest", p.file.token_digest);
    put_origin(s, &p);
    put_layers(s, &p);
    int code = put_quantised(s, &p, err);
    put_tensors(s, &p.file.st);
    packed_payload_close(&p);
    return code;
}

int show_embedder(struct sheet *s, const char *path, enum show_depth depth, struct err *err)
{
    struct safetensors st;
    struct wordpiece *w = wordpiece_open(path, err);
    char *weights = file_join(path, "model.safetensors");

    (void)depth;
    int code = w ? 0 : err->code;
    if (!code)
        code = weights ? safetensors_open(&st, weights, err) : err_nomem(err);
    free(weights);
    if (!code) {
        sheet_text(s, "architecture", "bert");
        sheet_int(s, "vocabulary", wordpiece_n_vocab(w));
        sheet_bytes(s, "weights_bytes", (int64_t)st.map.n);
        put_tensors(s, &st);
        safetensors_close(&st);
    }
    wordpiece_close(w);
    return code;
}

/* ---- --tokenize -------------------------------------------------------- */

/* A model's tokenizer or an embedder's. */
struct any_tokenizer {
    struct model *model;
    struct tokenizer *bpe;
    struct wordpiece *wordpiece;
};

static void close_tokenizer(struct any_tokenizer *t)
{
    wordpiece_close(t->wordpiece);
    tokenizer_free(t->bpe);
    model_close(t->model);
}

static int open_tokenizer(struct any_tokenizer *t, const char *path, struct err *err)
{
    enum show_kind kind;

    if (show_detect(path, &kind, err))
        return err->code;
    if (kind == SHOW_EMBEDDER) {
        t->wordpiece = wordpiece_open(path, err);
        return t->wordpiece ? 0 : err->code;
    }
    if (kind != SHOW_MODEL)
        return err_set(err, ERR_FORMAT, "'%s' is not a model", path);
    t->model = model_open(path, err);
    t->bpe = t->model ? tokenizer_open(t->model, err) : NULL;
    return t->bpe ? 0 : err->code;
}

static void print_ids(const int32_t *ids, int n)
{
    for (int i = 0; i < n; i++)
        printf(i ? " %d" : "%d", ids[i]);
    putchar('\n');
}

static int print_line(const struct any_tokenizer *t, const char *text, size_t n, struct err *err)
{
    struct tokens tokens = { 0 };
    int code = t->wordpiece ? wordpiece_encode(t->wordpiece, text, n, &tokens, err)
                            : tokenizer_encode(t->bpe, (struct text_view){ text, n }, SPECIAL_AS_TEXT, &tokens, err);

    if (!code)
        print_ids(tokens.at, tokens.n);
    tokens_release(&tokens);
    return code;
}

static int print_lines(const struct any_tokenizer *t, const char *path, struct err *err)
{
    struct buf text = { 0 };
    int code = file_read(&text, path, SIZE_MAX / 4, err);
    const char *at = buf_str(&text), *end = at + text.n;
    int separator = memchr(at, '\0', text.n) ? '\0' : '\n';

    while (!code && at < end) {
        const char *stop = memchr(at, separator, (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        code = print_line(t, at, n, err);
        at += n + 1;
    }
    buf_release(&text);
    return code;
}

int show_tokens(const char *model, const char *path, struct err *err)
{
    struct any_tokenizer t = { 0 };
    char *used = model_path(model, err);

    if (!used)
        return err->code;
    int code = open_tokenizer(&t, used, err);
    if (!code)
        code = print_lines(&t, path, err);
    close_tokenizer(&t);
    free(used);
    return code;
}

/* shape_fields.c - a model's config.json; for a GGUF file or a synthetic model an object of the same fields. */
#include "engine/model/shape_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_NAME = 64, GGUF_LIST_MAX = SHAPE_LAYERS };

static const double count_max = 1 << 30;

/* ---- GGUF ---------------------------------------------------------------- */

/* Keys of an architecture, and the fields that say the same. */
static const struct {
    const char *key, *field;
} same[] = {
    { "block_count", "num_hidden_layers" },
    { "nextn_predict_layers", "layers_of_drafts" }, // counted in block_count
    { "embedding_length", "hidden_size" },
    { "context_length", "max_position_embeddings" },
    { "vocab_size", "vocab_size" },
    { "attention.head_count", "num_attention_heads" },
    { "attention.head_count_kv", "num_key_value_heads" },
    { "attention.key_length", "head_dim" },
    { "attention.value_length_mla", "v_head_dim" }, // of two keys of a field the first counts
    { "attention.value_length", "v_head_dim" },
    { "attention.key_length_swa", "swa_head_dim" },
    { "attention.value_length_swa", "swa_v_head_dim" },
    { "attention.key_length_mla", "qk_head_dim" },
    { "attention.kv_lora_rank", "kv_lora_rank" },
    { "attention.q_lora_rank", "q_lora_rank" },
    { "rope.dimension_count", "qk_rope_head_dim" },
    { "attention.sliding_window", "sliding_window" },
    { "attention.sliding_window_pattern", "sliding_window_pattern" },
    { "attention.shared_kv_layers", "num_kv_shared_layers" },
    { "attention.chunk_size", "attention_chunk_size" },
    { "attention.indexer.key_length", "index_head_dim" },
    { "attention.indexer.head_count", "index_n_heads" },
    { "attention.indexer.top_k", "index_topk" },
    { "full_attention_interval", "full_attention_interval" },
    { "ssm.inner_size", "ssm_inner_size" },
    { "ssm.state_size", "ssm_state_size" },
    { "ssm.group_count", "ssm_group_count" },
    { "ssm.conv_kernel", "ssm_conv_kernel" },
    { "shortconv.l_cache", "conv_L_cache" },
    { "feed_forward_length", "intermediate_size" },
    { "expert_count", "num_experts" },
    { "expert_used_count", "num_experts_per_tok" },
    { "expert_feed_forward_length", "moe_intermediate_size" },
    { "expert_shared_count", "n_shared_experts" },
    { "expert_shared_feed_forward_length", "shared_expert_intermediate_size" },
    { "leading_dense_block_count", "first_k_dense_replace" },
};

static void put_key(struct json_out *w, const struct gguf *g, const char *key, const char *field)
{
    struct gguf_array list;
    struct err ignored;
    double number;

    if (gguf_want_real(g, key, &number, &ignored) == 0) {
        json_put_real(w, field, number);
    } else if (gguf_want_ints(g, key, &list, &ignored) == 0) {
        json_begin(w, field, '[');
        for (int i = 0; i < list.n && i < GGUF_LIST_MAX; i++)
            json_put_int(w, NULL, gguf_next_int(&list));
        json_end(w, ']');
    }
}

static int put_gguf(struct json_out *w, const struct gguf *g, struct err *err)
{
    struct text_view arch;
    char key[2 * FIELD_NAME];

    if (gguf_want_text(g, "general.architecture", &arch, err))
        return err->code;
    int width = text_view_width(arch, FIELD_NAME - 1);
    json_put_text_n(w, "model_type", arch.at, (size_t)width);
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        snprintf(key, sizeof(key), "%.*s.%s", width, arch.at, same[i].key);
        put_key(w, g, key, same[i].field);
    }
    return 0;
}

/* ---- synthetic ------------------------------------------------------------- */

static void put_synthetic(struct json_out *w, const struct model_config *c)
{
    json_put_text(w, "model_type", c->arch);
    json_put_int(w, "num_hidden_layers", c->n_layers);
    json_put_int(w, "hidden_size", c->d_model);
    json_put_int(w, "num_attention_heads", c->n_heads);
    json_put_int(w, "num_key_value_heads", c->n_kv_heads);
    json_put_int(w, "head_dim", c->head_dim);
    json_put_int(w, "vocab_size", c->n_vocab);
    json_put_int(w, "max_position_embeddings", c->max_tokens);
    json_put_int(w, "intermediate_size", c->d_ff);
    json_put_int(w, "num_experts", c->n_experts);
    json_put_int(w, "num_experts_per_tok", c->n_experts_used);
    json_put_int(w, "moe_intermediate_size", c->expert_ff);
    json_put_bool(w, "tie_word_embeddings", c->tied);
}

struct json *shape_config(const struct model *m, struct err *err)
{
    struct buf text = { 0 };
    struct json_out w = { .buf = &text };
    int code = 0;

    json_begin(&w, NULL, '{');
    if (m->synthetic)
        put_synthetic(&w, &m->config);
    else
        code = put_gguf(&w, &m->gguf, err);
    json_end(&w, '}');
    struct json *json = NULL;
    if (!code && buf_failed(&text))
        err_nomem(err);
    else if (!code)
        json = json_parse(buf_str(&text), text.n, err);
    buf_release(&text);
    return json;
}

/* ---- lookup ------------------------------------------------------------------ */

/* The value of "NAME=NUMBER " in a list; `absent`: the list lacks it. */
static double default_of(const char *list, const char *name, size_t n, double absent)
{
    for (const char *at = list; *at; at += strcspn(at, " ") + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return strtod(at + n + 1, NULL);
    return absent;
}

/* The next of several names; false: no more. */
static bool next_name(const char **names, char name[FIELD_NAME])
{
    size_t n = strcspn(*names, " ");

    snprintf(name, FIELD_NAME, "%.*s", (int)n, *names);
    *names += n + ((*names)[n] == ' ');
    return n > 0;
}

const struct json *shape_value(const struct shape_fields *f, const char *names)
{
    char name[FIELD_NAME];

    while (next_name(&names, name)) {
        const struct json *v = json_get(f->at, name);
        if (v && !json_is_null(v))
            return v;
    }
    return NULL;
}

double shape_field(struct shape_fields *f, const char *names, int layer, double absent)
{
    char name[FIELD_NAME];

    for (const char *at = names; next_name(&at, name);) {
        const struct json *v = json_get(f->at, name);
        if (json_is_array(v))
            v = json_at(v, layer);
        if (json_is_bool(v))
            return json_true(v);
        if (!json_is_number(v))
            continue;
        double x = json_real(v);
        if (x >= 0 && x <= count_max && x == floor(x))
            return x;
        if (!f->bad.code)
            err_set(&f->bad, ERR_FORMAT, "field '%s' is %g, not a count", name, x);
        return absent;
    }
    for (const char *at = names; next_name(&at, name);) {
        double x = default_of(f->defaults, name, strlen(name), -1);
        if (x >= 0)
            return x;
    }
    return absent;
}

/* shape.c - which layers keep what, by the fields of config.json. */
#include "engine/model/shape_internal.h"

#include <math.h>
#include <string.h>

enum { FIELDS_MAX = 4096 }; // each is looked up by name

/* ---- kinds of layers -------------------------------------------------------- */

/* What layer_types and layers_block_type call them. */
static const struct {
    const char *name;
    uint8_t kind;
} named[] = {
    { "full_attention", LAYER_FULL | LAYER_MLP },
    { "attention", LAYER_FULL | LAYER_MLP },
    { "deepseek_sparse_attention", LAYER_FULL | LAYER_MLP },
    { "full", LAYER_FULL | LAYER_MLP },
    { "global", LAYER_FULL | LAYER_MLP },
    { "sliding_attention", LAYER_WINDOW | LAYER_MLP },
    { "chunked_attention", LAYER_WINDOW | LAYER_MLP },
    { "hybrid_sliding", LAYER_WINDOW | LAYER_MLP },
    { "local", LAYER_WINDOW | LAYER_MLP },
    { "linear_attention", LAYER_STATE | LAYER_MLP },
    { "mamba", LAYER_STATE | LAYER_MLP },
    { "recurrent", LAYER_STATE | LAYER_MLP },
    { "conv", LAYER_STATE | LAYER_MLP },
    { "hybrid", LAYER_FULL | LAYER_STATE | LAYER_MLP },
    { "mlp", LAYER_MLP },
    { "moe", LAYER_EXPERTS },
    { "*", LAYER_FULL },
    { "M", LAYER_STATE },
    { "-", LAYER_MLP },
    { "E", LAYER_EXPERTS },
    { "L", LAYER_WINDOW | LAYER_MLP },
    { "G", LAYER_FULL | LAYER_MLP },
};

static int kind_named(const char *name, uint8_t *kind)
{
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (strcmp(named[i].name, name) == 0) {
            *kind = named[i].kind;
            return 0;
        }
    return -1;
}

static bool has_number(const struct json *list, int x)
{
    const struct json *v = json_first(list);

    for (int i = 0; v && i < SHAPE_LAYERS; i++, v = json_next(v))
        if (json_is_number(v) && json_real(v) == x)
            return true;
    return false;
}

/* By a list of names, or a text with a letter for each layer. False: there is neither; a name that is not known is
 * noted in f->bad. */
static bool kind_listed(struct shape_fields *f, int i, int n, uint8_t *kind)
{
    const struct json *list = shape_value(f, "layer_types layers_block_type ");
    const char *text = json_text(shape_value(f, "hybrid_override_pattern sliding_window_pattern "));
    const char *name = json_is_array(list) ? json_text(json_at(list, i)) : NULL;
    char letter[2] = "";

    if (!json_is_array(list) && !(text && *text))
        return false;
    if (!json_is_array(list)) {
        letter[0] = text[(size_t)i % strlen(text)];
        name = i == n - 1 && letter[0] == 'L' ? "G" : letter; // EXAONE 4: the last layer has full attention
    }
    if ((!name || kind_named(name, kind)) && !f->bad.code)
        err_set(&f->bad, ERR_FORMAT, "field '%s' has no kind that is known for layer %d",
                json_is_array(list) ? "layer_types" : "hybrid_override_pattern", i);
    return true;
}

/* By numbers of layers, or a rhythm: full attention in some, a window or a state in the others. */
static uint8_t kind_counted(struct shape_fields *f, int i)
{
    const struct json *kda = json_get(shape_value(f, "linear_attn_config "), "full_attn_layers");
    const struct json *full = shape_value(f, "attn_layer_indices full_attn_idxs ");
    double every = shape_field(f, "full_attention_interval ", 0, 0),
           period = shape_field(f, "attn_layer_period ", 0, 0);

    if (shape_value(f, "local_layer_ids "))
        return has_number(shape_value(f, "local_layer_ids "), i) ? LAYER_WINDOW : LAYER_FULL;
    if (kda)
        return has_number(kda, i + 1) ? LAYER_FULL : LAYER_STATE;
    if (full)
        return has_number(full, i) ? LAYER_FULL : LAYER_STATE;
    if (json_is_array(shape_value(f, "attn_type_list ")))
        return shape_field(f, "attn_type_list ", i, 1) > 0 ? LAYER_FULL : LAYER_STATE;
    if (json_is_array(shape_value(f, "hybrid_layer_pattern ")))
        return shape_field(f, "hybrid_layer_pattern ", i, 0) > 0 ? LAYER_WINDOW : LAYER_FULL;
    if (period > 0)
        return i % (int)period == (int)shape_field(f, "attn_layer_offset ", 0, 0) ? LAYER_FULL : LAYER_STATE;
    if (every > 0)
        return (i + 1) % (int)every == 0 ? LAYER_FULL : LAYER_STATE;
    return 0;
}

/* By fields about windows. */
static uint8_t kind_windowed(struct shape_fields *f, int i)
{
    double pattern = shape_field(f, "sliding_window_pattern _sliding_window_pattern ", i, 0);
    double nope = shape_field(f, "no_rope_layer_interval ", 0, 0), all = shape_field(f, "all_windows ", 0, 0);

    if (nope > 0 && shape_value(f, "attention_chunk_size ")) {
        bool list = json_first(shape_value(f, "no_rope_layers ")) != NULL;
        bool chunked = list ? shape_field(f, "no_rope_layers ", i, 1) > 0 : (i + 1) % (int)nope != 0;
        return chunked ? LAYER_WINDOW : LAYER_FULL;
    }
    if (shape_field(f, "sliding_window ", i, 0) == 0)
        return LAYER_FULL;
    if (json_is_array(shape_value(f, "sliding_window_pattern "))) // of GGUF files
        return pattern > 0 ? LAYER_WINDOW : LAYER_FULL;
    if (pattern > 0)
        return (i + 1) % (int)pattern ? LAYER_WINDOW : LAYER_FULL;
    return shape_field(f, "use_sliding_window ", 0, all) > 0 && i >= shape_field(f, "max_window_layers ", 0, 0)
               ? LAYER_WINDOW
               : LAYER_FULL;
}

static uint8_t kind_of(struct shape_fields *f, int i, int n)
{
    uint8_t kind = 0;

    if (json_is_array(shape_value(f, "num_key_value_heads ")) && shape_field(f, "num_key_value_heads ", i, 1) == 0) {
        bool alone = shape_field(f, "mlp_matrices ", 0, 3) == 2; // Nemotron-H: a layer has one thing
        bool mlp = shape_field(f, "intermediate_size ", i, 0) > 0;
        return alone ? (mlp ? LAYER_MLP : LAYER_STATE) : LAYER_STATE | LAYER_MLP;
    }
    if (shape_value(f, "compress_ratios "))
        return LAYER_FULL | LAYER_MLP;
    if (kind_listed(f, i, n, &kind))
        return kind;
    kind = kind_counted(f, i);
    if (!kind && shape_field(f, "every_layer_both ", 0, 0) > 0)
        kind = LAYER_FULL | LAYER_STATE;
    return (uint8_t)((kind ? kind : kind_windowed(f, i)) | LAYER_MLP);
}

/* Where some layers are an MLP alone, the others have none. */
static void find_kinds(struct shape_fields *f, const struct shape *s, uint8_t *kind)
{
    bool alone = false;

    for (int i = 0; i < s->n_layers; i++) {
        kind[i] = kind_of(f, i, s->n_layers);
        alone = alone || kind[i] == LAYER_MLP || kind[i] == LAYER_EXPERTS;
    }
    for (int i = 0; i < s->n_layers && alone; i++)
        if (kind[i] & (LAYER_ATTENTION | LAYER_STATE))
            kind[i] &= (uint8_t)~LAYER_MLP;
}

/* ---- bytes --------------------------------------------------------------------- */

static void add_part(struct shape *s, double bytes, int window, double every)
{
    int i = 0;

    if (bytes == 0 || every < 1)
        return;
    while (i < s->n_parts && (s->part[i].window != window || s->part[i].every != (int)every))
        i++;
    if (i == SHAPE_PARTS)
        return; // as many as there are windows and rates in any model, several times
    if (i == s->n_parts)
        s->part[s->n_parts++] = (struct shape_part){ 0, 0, window, (int)every };
    s->part[i].layers++;
    s->part[i].bytes += bytes;
}

/* DeepSeek V4: a window in each layer, and an entry of so many tokens; with entries of 4 an indexer. Rows are 448
 * numbers of 8 bits with 8 scales, and 64 rotated ones of 16. In V4.1 four layers own all entries and indexer keys, of
 * 4 bits, and windows have 8. */
static void add_compressed(struct shape *s, struct shape_fields *f, int i, int window)
{
    double wide = shape_field(f, "head_dim ", 0, 512), rope = shape_field(f, "qk_rope_head_dim ", 0, 64);
    double row = wide - fmin(rope, wide) + 2 * rope + 8, every = shape_field(f, "compress_ratios ", i, 0);
    double index = shape_field(f, "index_head_dim ", 0, 0);
    const struct json *owners = shape_value(f, "kv_source_layer_ids ");

    add_part(s, owners ? wide + wide / 32 : row, window, 1);
    if (owners && !has_number(owners, i))
        return;
    add_part(s, owners ? wide / 2 + wide / 16 : row, 0, every);
    if (owners)
        add_part(s, index / 2 + index / 32, 0, every);
    else if (every == 4)
        add_part(s, index + 4 * ceil(index / 128), 0, every);
}

/* Bytes of a token's indexer key in layer i. */
static double index_bytes(struct shape_fields *f, int i)
{
    double width = shape_field(f, "index_head_dim ", 0, 0), freq = shape_field(f, "index_topk_freq ", 0, 1);
    int from = (int)shape_field(f, "index_skip_topk_offset ", 0, 0);
    const struct json *types = shape_value(f, "indexer_types "), *sparse = shape_value(f, "sparse_attention_config ");

    if (json_is_object(sparse)) { // MiniMax-M3
        struct shape_fields in = { .at = sparse, .defaults = "" };
        return shape_field(&in, "sparse_attention_freq ", i, 0) > 0 ? 2 * shape_field(&in, "sparse_index_dim ", 0, 0)
                                                                    : 0;
    }
    const char *type = json_is_array(types) ? json_text(json_at(types, i)) : NULL;
    bool own = json_is_array(types) ? type && strcmp(type, "full") == 0
                                    : freq <= 1 || i < from || (i - from + 1) % (int)freq == 0;
    return own && width > 0 ? width + 4 * ceil(width / 128) : 0;
}

/* Numbers that a layer keeps of a token; < 0: a field is missing. */
static double numbers_of(struct shape_fields *f, int i, bool windowed)
{
    double latent = shape_field(f, windowed ? "swa_kv_lora_rank kv_lora_rank " : "kv_lora_rank ", 0, 0);

    if (latent > 0)
        return latent + shape_field(f, windowed ? "swa_qk_rope_head_dim qk_rope_head_dim " : "qk_rope_head_dim ", 0, 0);
    double heads = shape_field(f, "num_attention_heads n_head n_heads ", i, -1);
    double wide = shape_field(f, "hidden_size n_embd d_model ", 0, -1);
    double G = shape_field(f, "num_key_value_heads num_kv_heads n_head_kv multi_query_group_num ", i, heads);
    double K = shape_field(f, "head_dim attention_head_dim kv_channels ", i, heads > 0 ? floor(wide / heads) : -1);
    double V = shape_field(f, "v_head_dim ", i, K);
    if (heads > 0 && (G < 1 || G > heads) && !f->bad.code)
        err_set(&f->bad, ERR_FORMAT, "the number of key-value heads is %g; it can be 1 to %g", G, heads);
    if (windowed) {
        G = shape_field(f, "swa_num_key_value_heads sliding_num_key_value_heads ", i, G);
        K = shape_field(f, "swa_head_dim sliding_head_dim ", i, K);
        V = shape_field(f, "swa_v_head_dim sliding_v_head_dim v_head_dim ", i, K);
    } else {
        G = shape_field(f, "num_global_key_value_heads ", i, G);
        K = shape_field(f, "global_head_dim ", i, K);
        V = shape_field(f, "global_v_head_dim v_head_dim ", i, K);
    }
    if ((heads < 0 || K < 0) && !f->bad.code)
        err_set(&f->bad, ERR_FORMAT, "it has no field '%s' with a number",
                heads < 0 ? "num_attention_heads" : "head_dim");
    return G * (K + V);
}

/* Pruned Llamas: how many KV heads a layer's block has. < 0: not such a model. */
static double pruned_heads(const struct shape_fields *f, int i)
{
    const struct json *attention = json_get(json_at(shape_value(f, "block_configs "), i), "attention");
    struct shape_fields in = { .at = attention, .defaults = "" }, all = *f;

    if (!attention)
        return -1;
    double group = shape_field(&in, "n_heads_in_group ", 0, 0);
    return group > 0 ? floor(shape_field(&all, "num_attention_heads ", 0, 0) / group) : 0;
}

static int window_of(struct shape_fields *f)
{
    double chunk =
        shape_field(f, "no_rope_layer_interval ", 0, 0) > 0 ? shape_field(f, "attention_chunk_size ", 0, 0) : 0;

    return (int)(chunk > 0 ? chunk : shape_field(f, "sliding_window sliding_window_size ", 0, 0));
}

/* The bits of a number of the cache, and what they are called. */
static double kv_bytes_of(struct shape *s, struct shape_fields *f)
{
    const struct json *scheme = json_get(f->quantised, "kv_cache_scheme");
    const char *name = json_text(scheme ? scheme : json_get(f->quantised, "kv_cache_quant_algo"));
    double bits = json_real(json_get(scheme, "num_bits"));

    if (name)
        bits = strcmp(name, "NVFP4") == 0 ? 4.5 : strcmp(name, "FP8") == 0 || strcmp(name, "INT8") == 0 ? 8 : 16;
    if (!(bits >= 2 && bits <= 16))
        bits = 16;
    s->kv_bits = bits;
    return bits / 8;
}

static void add_layer(struct shape *s, struct shape_fields *f, int i, uint8_t kind)
{
    bool windowed = kind & LAYER_WINDOW, shared = i >= s->n_layers - shape_field(f, "num_kv_shared_layers ", 0, 0);
    bool latent = shape_field(f, "kv_lora_rank ", 0, 0) > 0;
    double pruned = pruned_heads(f, i), bytes = kv_bytes_of(s, f);

    s->n_full += (kind & LAYER_FULL) != 0;
    s->n_window += windowed;
    s->n_state += (kind & LAYER_STATE) != 0;
    if (!(kind & LAYER_ATTENTION) || shared)
        return;
    if (shape_value(f, "compress_ratios "))
        add_compressed(s, f, i, s->window);
    else if (pruned >= 0) {
        double width =
            floor(shape_field(f, "hidden_size ", 0, 0) / fmax(shape_field(f, "num_attention_heads ", 0, 1), 1));
        add_part(s, bytes * 2 * pruned * width, 0, 1);
    } else
        add_part(s, bytes * numbers_of(f, i, windowed), windowed ? s->window : 0, 1);
    if (!windowed && (latent || shape_value(f, "sparse_attention_config ")))
        add_part(s, index_bytes(f, i), 0, shape_field(f, "index_kpool ", 0, 1));
    double kernel = shape_field(f, "sconv_kernel_size ", 0, 0); // Inkling: behind keys, values, attention and MLP
    if (kernel > 1)
        s->state_bytes += 2 * (kernel - 1) * (numbers_of(f, i, windowed) + 2 * shape_field(f, "hidden_size ", 0, 0));
}

/* Fields of states, in the order in which they are looked for: heads and width of values, of keys, numbers per channel,
 * tokens of the convolution. A blank name: 1 for heads and widths of values, otherwise 0. */
static const struct {
    const char *object, *heads, *width, *key_heads, *key_width, *state, *kernel;
} state_fields[] = {
    { "linear_attn_config ", "num_heads ", "head_dim ", "num_heads ", "head_dim ", "head_dim ",
      "short_conv_kernel_size " },
    { "", "mamba_num_heads mamba_n_heads n_mamba_heads ", "mamba_head_dim mamba_d_head mamba_headdim ",
      "n_groups mamba_n_groups mamba_ngroups ", "ssm_state_size mamba_d_state ", "ssm_state_size mamba_d_state ",
      "conv_kernel mamba_d_conv " },
    { "", "ssm_inner_size ", "", "ssm_group_count ", "ssm_state_size ", "ssm_state_size ", "ssm_conv_kernel " },
    { "", "linear_num_value_heads ", "linear_value_head_dim ", "linear_num_key_heads ", "linear_key_head_dim ",
      "linear_key_head_dim ", "linear_conv_kernel_dim " },
    { "", "mamba_expand ", "hidden_size ", "", "", "mamba_d_state ", "mamba_d_conv " },
    { "", "hidden_size ", "", "", "", "", "conv_L_cache " },
};

static double state_field(struct shape_fields *f, const char *names, double none)
{
    return *names ? shape_field(f, names, 0, -1) : none;
}

bool shape_state_of(struct shape_fields *f, struct shape_state *out)
{
    for (size_t i = 0; i < sizeof(state_fields) / sizeof(*state_fields); i++) {
        struct shape_fields in = *f;
        if (*state_fields[i].object)
            in = (struct shape_fields){ .at = shape_value(f, state_fields[i].object), .defaults = "" };
        double heads = state_field(&in, state_fields[i].heads, 1), width = state_field(&in, state_fields[i].width, 1);
        double groups = state_field(&in, state_fields[i].key_heads, 0),
               state = state_field(&in, state_fields[i].state, 0);
        double key_width = state_field(&in, state_fields[i].key_width, 0),
               kernel = state_field(&in, state_fields[i].kernel, 1);
        if (width < 0 && heads > 0) // "auto"
            width = shape_field(&in, "mamba_expand expand ", 0, 2) * shape_field(&in, "hidden_size ", 0, 0) / heads;
        if (heads > 0 && width > 0 && state >= 0 && kernel >= 1) {
            *out = (struct shape_state){ kernel, heads * width, fmax(groups, 0) * fmax(key_width, 0), state };
            return true;
        }
    }
    double heads = shape_field(f, "num_attention_heads ", 0, 0), wide = shape_field(f, "head_dim ", 0, 0);
    *out = (struct shape_state){ 1, heads * wide, 0, wide }; // lightning attention
    return json_is_array(shape_value(f, "attn_type_list ")) && heads * wide > 0;
}

static void add_states(struct shape *s, struct shape_fields *f)
{
    const char *type = json_text(shape_value(f, "mamba_ssm_dtype mamba_ssm_cache_dtype "));
    double number = type && (strcmp(type, "bfloat16") == 0 || strcmp(type, "float16") == 0) ? 2 : 4;
    struct shape_state x;

    if (s->n_state == 0)
        return;
    if (shape_state_of(f, &x))
        s->state_bytes += s->n_state * ((x.kernel - 1) * (x.inner + 2 * x.keys) * 2 + x.inner * x.state * number);
    else if (!f->bad.code)
        err_set(&f->bad, ERR_FORMAT,
                "it has no fields that say how large the state of its %d linear or Mamba layers is", s->n_state);
}

double shape_bytes(const struct shape *s, double n)
{
    double bytes = s->state_bytes;

    for (int i = 0; i < s->n_parts; i++) {
        const struct shape_part *p = &s->part[i];
        bytes += floor((p->window ? fmin(n, p->window) : n) / p->every) * p->bytes;
    }
    return bytes;
}

double shape_per_token(const struct shape *s)
{
    double bytes = 0;

    for (int i = 0; i < s->n_parts; i++)
        bytes += s->part[i].window ? 0 : s->part[i].bytes / s->part[i].every;
    return bytes;
}

double shape_constant(const struct shape *s)
{
    double bytes = s->state_bytes;

    for (int i = 0; i < s->n_parts; i++)
        bytes += (double)s->part[i].window / s->part[i].every * s->part[i].bytes;
    return bytes;
}

double shape_token_flop(const struct shape *s)
{
    return 2 * s->active_parameters + s->window_flop * s->window_tokens;
}

/* ---- the whole --------------------------------------------------------------------- */

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; *at && n > 0; at += strcspn(at, " ") + 1)
        if (strncmp(at, name, n) == 0 && at[n] == ' ')
            return true;
    return false;
}

/* The part about the text model, and its family. */
static int find_family(struct shape *s, struct shape_fields *f, bool gguf, struct err *err)
{
    static const char *const parts[] = { "text_config", "llm_config", "language_config", "thinker_config" };
    const char *type;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts);) { // Qwen-Omni has one within another
        const struct json *part = json_get(f->at, parts[i]);
        f->at = json_is_object(part) ? part : f->at;
        i = json_is_object(part) ? 0 : i + 1;
    }
    type = json_text(json_get(f->at, "model_type"));
    if (!type)
        type = json_text(json_get(f->whole, "model_type"));
    if (!type)
        return err_set(err, ERR_FORMAT, "it has no field 'model_type'");
    if (json_count(f->at) > FIELDS_MAX)
        return err_set(err, ERR_FORMAT, "it has %d fields, more than %d", json_count(f->at), FIELDS_MAX);
    snprintf(s->arch, sizeof(s->arch), "%s", type);
    for (int i = 0; shape_family(i) && !s->known; i++) {
        s->known = in_list(gguf ? shape_family(i)->gguf : shape_family(i)->types, s->arch);
        f->defaults = s->known ? shape_family(i)->defaults : "";
    }
    return 0;
}

/* Of an architecture that is not in the table only what the usual fields say is known. */
static int check_unknown(const struct shape *s, const struct shape_fields *f, struct err *err)
{
    static const char *const lists =
        "layer_types layers_block_type hybrid_layer_pattern hybrid_override_pattern "
        "sliding_window_pattern full_attention_interval linear_attn_config local_layer_ids "
        "compress_ratios ";
    static const char *const signs[] = { "mamba_d_state ",          "ssm_state_size ",         "state_size ",
                                         "linear_num_value_heads ", "attention_chunk_size ",   "block_types ",
                                         "num_kv_shared_layers ",   "cross_attention_layers ", "sliding_window " };

    if (s->known || shape_value(f, lists) || json_is_array(shape_value(f, "num_key_value_heads ")))
        return 0;
    if (!shape_value(f, "num_key_value_heads num_kv_heads n_head_kv multi_query_group_num kv_lora_rank "))
        return err_set(err, ERR_FORMAT, "architecture '%s' is not known, and it has no field 'num_key_value_heads'",
                       s->arch);
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        const struct json *off = i + 1 == sizeof(signs) / sizeof(*signs) ? shape_value(f, "use_sliding_window ") : NULL;
        if (shape_value(f, signs[i]) && !(json_is_bool(off) && !json_true(off)))
            return err_set(
                err, ERR_FORMAT,
                "architecture '%s' is not known, and its field '%.*s' says that not all layers keep all tokens",
                s->arch, (int)strcspn(signs[i], " "), signs[i]);
    }
    return 0;
}

/* Where there is no number, as many as a list or a pattern names. */
static double count_layers(struct shape_fields *f)
{
    const struct json *list = shape_value(f, "layer_types layers_block_type ");
    const char *pattern = json_text(shape_value(f, "hybrid_override_pattern "));
    double none = json_is_array(list) ? json_count(list) : pattern ? (double)strlen(pattern) : -1;

    return shape_field(f, "num_hidden_layers n_layer n_layers num_layers ", 0, none) -
           shape_field(f, "layers_of_drafts ", 0, 0);
}

static int read_fields(struct shape *s, struct shape_fields *f, struct err *err)
{
    uint8_t kind[SHAPE_LAYERS];
    double layers = count_layers(f);
    double max = shape_field(f, "max_position_embeddings n_positions max_sequence_length seq_length ", 0, 0);

    if (layers < 0)
        return f->bad.code ? 0 : err_set(err, ERR_FORMAT, "it has no field 'num_hidden_layers' with a number");
    if (layers < 1 || layers > SHAPE_LAYERS)
        return err_set(err, ERR_FORMAT, "the number of layers is %g; it can be 1 to %d", layers, SHAPE_LAYERS);
    s->n_layers = (int)layers;
    s->token_max = max;
    s->window = window_of(f);
    s->unserved = shape_field(f, "unserved ", 0, 0) > 0;
    if (check_unknown(s, f, err))
        return err->code;
    find_kinds(f, s, kind);
    if (max > 0 && s->window >= max)
        s->window = 0; // it never binds
    for (int i = 0; i < s->n_layers && !f->bad.code; i++)
        add_layer(s, f, i, kind[i]);
    if (!f->bad.code)
        add_states(s, f);
    shape_cost(s, f, kind);
    return 0;
}

/* The first of several files is taken for their mean. */
static double gguf_bytes(const struct model *m)
{
    struct err ignored;
    int64_t n = 1;

    if (gguf_may_int(&m->gguf, "split.count", &n, &ignored) || n < 1)
        n = 1;
    return (double)m->map.n * (double)n;
}

/* NVIDIA's models say in a file of their own how they are quantised; NULL: no such file, or not one that can be read.
 */
static struct json *quant_config(const char *dir)
{
    struct err ignored;

    return model_json(dir, "hf_quant_config.json", &ignored);
}

int shape_read(const struct model *m, struct shape *s, struct err *err)
{
    struct json *made = m->json ? NULL : shape_config(m, err);
    struct shape_fields f = { .whole = m->json ? m->json : made, .defaults = "" };

    *s = (struct shape){ 0 };
    if (!f.whole)
        return err->code;
    f.at = f.whole;
    struct json *apart = m->json ? quant_config(m->path) : NULL;
    snprintf(s->name, sizeof(s->name), "%s", m->config.name);
    int code = find_family(s, &f, !m->json && !m->synthetic, err);
    const struct json *in[] = { json_get(f.whole, "quantization_config"), json_get(f.at, "quantization_config"),
                                json_get(apart, "quantization") };
    for (int i = 2; i >= 0; i--)
        f.quantised = json_is_object(in[i]) ? in[i] : f.quantised;
    if (!code)
        code = read_fields(s, &f, err);
    if (!code && f.bad.code) {
        *err = f.bad;
        code = err->code;
    }
    if (made && !m->synthetic)
        s->weights_bytes = gguf_bytes(m);
    json_free(made);
    json_free(apart);
    return code ? err_wrap(err, "'%s'", m->path) : 0;
}

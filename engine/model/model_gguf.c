/* model_gguf.c - one or several numbered GGUF files as a model: keys become the config, tensors get Hugging Face's
 * names.
 *
 * Keys come first, since the number of heads says how the rows of q and k are stored. Every key of the architecture is
 * in the table of known keys below, or refused: it may change what the model computes.
 */
#include "engine/model/model_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ----------------------------------------------------------- */

/* The file that was named (0) and those numbered after it. */
static const struct gguf *file_of(const struct model *m, int i)
{
    return i == 0 ? &m->gguf : &m->file[i - 1].gguf;
}

/* The role of a tensor by its GGUF name; TENSOR_ROLES: no role has that name. */
static enum tensor_role role_of(const struct model *m, const char *name, int *layer)
{
    int at = 0;

    *layer = 0;
    bool in_layer = sscanf(name, "blk.%5d.%n", layer, &at) == 1 && at > 0;
    int role = in_layer ? 0 : TENSOR_EMBEDDING, end = in_layer ? TENSOR_EMBEDDING : TENSOR_ROLES;
    while (role < end &&
           !(model_has(&m->config, (enum tensor_role)role) &&
             strcmp(family_gguf_tensor(m->family, (enum tensor_role)role), name + (in_layer ? at : 0)) == 0))
        role++;
    return role < end ? (enum tensor_role)role : TENSOR_ROLES;
}

/* Heads whose rows are in pairs. */
static int paired_heads(const struct model *m, enum tensor_role role)
{
    if (!m->family->pairs)
        return 0;
    if (role == TENSOR_Q || role == TENSOR_Q_BIAS)
        return m->config.n_heads;
    return role == TENSOR_K || role == TENSOR_K_BIAS ? m->config.n_kv_heads : 0;
}

static int add_tensor(struct model *m, struct tensor t, struct err *err)
{
    const struct model_config *c = &m->config;
    char name[MODEL_TENSOR_NAME];
    int layer;
    enum tensor_role role = role_of(m, t.name, &layer);
    int heads = paired_heads(m, role);

    if (t.dim[0] == (int64_t)heads * c->head_dim) // a tensor of another size is refused by model_check()
        t.paired_heads = heads;
    if (role > TENSOR_ROUTER && role <= TENSOR_EXPERT_DOWN)
        model_experts_name(name, m, role, layer);
    else if (role < TENSOR_ROLES)
        model_tensor_name(name, m, role, layer);
    else
        snprintf(name, sizeof(name), "%s", t.name);
    return model_add(m, name, &t, err);
}

static int add_tensors(struct model *m, struct err *err)
{
    enum { NAME_MAX_BYTES = 128 };
    size_t n = 0;

    for (int p = 0; p <= m->n_shards; p++)
        n += (size_t)file_of(m, p)->n_tensors;
    if (model_reserve(m, n, err))
        return err->code;
    for (int p = 0; p <= m->n_shards; p++)
        for (int i = 0; i < file_of(m, p)->n_tensors; i++) {
            const struct tensor *t = &file_of(m, p)->tensor[i];
            if (strlen(t->name) > NAME_MAX_BYTES)
                return err_set(err, ERR_FORMAT, "the name of tensor %d has %zu bytes, more than %d", i, strlen(t->name),
                               NAME_MAX_BYTES);
            if (add_tensor(m, *t, err))
                return err->code;
        }
    return 0;
}

/* A tensor of any of the files; NULL: none. */
static const struct tensor *find_tensor(const struct model *m, const char *name)
{
    for (int p = 0; p <= m->n_shards; p++) {
        const struct gguf *g = file_of(m, p);
        int i = map_find(&g->names, name, strlen(name));
        if (i >= 0)
            return &g->tensor[i];
    }
    return NULL;
}

/* ---- numbered files --------------------------------------------------------------- */

/* The path of file i of n, "NAME-00002-of-00005.gguf", from the path of the first. NULL: out of memory, or ERR_FORMAT
 * for a path that does not end in such a number. */
static char *numbered_path(const char *first, int i, int n, struct err *err)
{
    char end[32], other[32];
    size_t all = strlen(first), size = (size_t)snprintf(end, sizeof(end), "-%05d-of-%05d.gguf", 1, n);

    if (all < size || strcmp(first + all - size, end) != 0) {
        err_set(err, ERR_FORMAT, "it is the first of %d files ('split.count'), and its name does not end in '%s'", n,
                end);
        return NULL;
    }
    char *path = strdup(first);
    snprintf(other, sizeof(other), "-%05d-of-%05d.gguf", i + 1, n);
    if (path)
        memcpy(path + all - size, other, size);
    else
        err_nomem(err);
    return path;
}

/* Do its keys say file i of n? */
static int check_number(const struct gguf *g, int i, int n, struct err *err)
{
    int64_t no = -1, count = 0;

    if (gguf_want_int(g, "split.no", &no, err) || gguf_want_int(g, "split.count", &count, err))
        return err->code;
    if (no != i || count != n)
        return err_set(err, ERR_FORMAT, "its keys say file %lld of %lld, not %d of %d", (long long)no + 1,
                       (long long)count, i + 1, n);
    return 0;
}

static int open_numbered(struct model *m, int i, int n, struct err *err)
{
    struct gguf_file *file = &m->file[m->n_shards];
    char *path = numbered_path(m->path, i, n, err);

    if (!path)
        return err->code;
    m->shard_path[m->n_shards++] = path;
    if (file_map(&file->map, path, err))
        return err->code;
    if (gguf_parse(&file->gguf, file->map.at, file->map.n, err) || check_number(&file->gguf, i, n, err))
        return err_wrap(err, "'%s'", path);
    return 0;
}

/* Opens the files after the first, if there are any. */
static int open_files(struct model *m, struct err *err)
{
    enum { FILES_MAX = 99999 }; // five digits
    int64_t n = 1, no = 0, n_tensors = -1, found = m->gguf.n_tensors;

    if (gguf_may_int(&m->gguf, "split.count", &n, err) || gguf_may_int(&m->gguf, "split.no", &no, err) ||
        gguf_may_int(&m->gguf, "split.tensors.count", &n_tensors, err))
        return err->code;
    if (n == 0 || n == 1)
        return 0;
    if (n < 0 || n > FILES_MAX || no != 0)
        return err_set(err, ERR_FORMAT, "it is file %lld of %lld ('split.no'); name the first file", (long long)no + 1,
                       (long long)n);
    m->file = calloc((size_t)n, sizeof(*m->file));
    m->shard_path = calloc((size_t)n, sizeof(*m->shard_path));
    if (!m->file || !m->shard_path)
        return err_nomem(err);
    for (int i = 1; i < n; i++) {
        if (open_numbered(m, i, (int)n, err))
            return err->code;
        found += m->file[i - 1].gguf.n_tensors;
    }
    if (n_tensors >= 0 && n_tensors != found)
        return err_set(err, ERR_FORMAT, "its %lld files have %lld tensors, not %lld ('split.tensors.count')",
                       (long long)n, (long long)found, (long long)n_tensors);
    return 0;
}

/* ---- config ------------------------------------------------------------ */

/* The keys of an architecture: "llama.block_count". */
struct arch_keys {
    const struct gguf *gguf;
    const char *arch;
};

/* A whole number that fits an int. An absent key gives `fallback`, or with fallback 0 an error. */
static int read_int(const struct arch_keys *k, const char *key, int fallback, int *out, struct err *err)
{
    char full[128];
    int64_t v = fallback;

    snprintf(full, sizeof(full), "%s.%s", k->arch, key);
    if (fallback ? gguf_may_int(k->gguf, full, &v, err) : gguf_want_int(k->gguf, full, &v, err))
        return err->code;
    if (v < 0 || v > INT_MAX)
        return err_set(err, ERR_FORMAT, "key '%s' is %lld, not a count", full, (long long)v);
    *out = (int)v;
    return 0;
}

static int read_real(const struct arch_keys *k, const char *key, double *out, struct err *err)
{
    char full[128];

    snprintf(full, sizeof(full), "%s.%s", k->arch, key);
    return gguf_may_real(k->gguf, full, out, err);
}

/* The keys of an architecture that this engine knows: it reads them, or they do not change the computation, or it
 * accepts only the families' value. */
enum key_use { KEY_READ, KEY_HARMLESS, KEY_NUMBER, KEY_TEXT, KEY_PATTERN }; // PATTERN: where windows have one
static const struct {
    const char *name;
    enum key_use use;
    double number;    // the only one supported
    const char *text; // the only one supported
} known_keys[] = {
    { .name = "block_count" },
    { .name = "embedding_length" },
    { .name = "feed_forward_length" },
    { .name = "context_length" },
    { .name = "expert_count" },
    { .name = "expert_used_count" },
    { .name = "expert_feed_forward_length" },
    { .name = "attention.head_count" },
    { .name = "attention.head_count_kv" },
    { .name = "attention.key_length" },
    { .name = "attention.value_length" },
    { .name = "attention.layer_norm_rms_epsilon" },
    { .name = "attention.sliding_window" },
    { .name = "attention.sliding_window_pattern", .use = KEY_PATTERN },
    { .name = "rope.freq_base_swa", .use = KEY_PATTERN },
    { .name = "rope.dimension_count" },
    { .name = "rope.freq_base" },
    { .name = "rope.scale_linear" },
    { .name = "rope.scaling.type" },
    { .name = "rope.scaling.factor" },
    { .name = "rope.scaling.original_context_length" },
    { .name = "rope.scaling.attn_factor" },
    { .name = "rope.scaling.yarn_beta_fast" },
    { .name = "rope.scaling.yarn_beta_slow" },
    { .name = "vocab_size", .use = KEY_HARMLESS }, // taken from the embedding
    { .name = "pooling_type", .use = KEY_HARMLESS },
    { .name = "attention.layer_norm_epsilon", .use = KEY_HARMLESS }, // a Llama's norms are RMS norms
    { .name = "rope.scaling.finetuned", .use = KEY_HARMLESS },
    { .name = "rope.scaling.yarn_ext_factor", .use = KEY_NUMBER, .number = 1 },
    { .name = "rope.scaling.yarn_attn_factor", .use = KEY_NUMBER, .number = 1 },
    { .name = "attention.causal", .use = KEY_NUMBER, .number = 1 },
    { .name = "attention.scale", .use = KEY_NUMBER, .number = 0 }, // 0: 1 / sqrt(key_length)
    { .name = "attention.clamp_kqv", .use = KEY_NUMBER, .number = 0 },
    { .name = "attention.max_alibi_bias", .use = KEY_NUMBER, .number = 0 },
    { .name = "attn_logit_softcapping" },
    { .name = "final_logit_softcapping" },
    { .name = "logit_scale", .use = KEY_NUMBER, .number = 1 },
    { .name = "residual_scale", .use = KEY_NUMBER, .number = 1 },
    { .name = "embedding_scale", .use = KEY_NUMBER, .number = 1 },
    { .name = "use_parallel_residual", .use = KEY_NUMBER, .number = 0 },
    { .name = "expert_shared_count", .use = KEY_NUMBER, .number = 0 },
    { .name = "expert_shared_feed_forward_length", .use = KEY_NUMBER, .number = 0 },
    { .name = "expert_gating_func", .use = KEY_NUMBER, .number = 1 }, // softmax
    { .name = "expert_weights_norm", .use = KEY_NUMBER, .number = 1 },
    { .name = "leading_dense_block_count", .use = KEY_NUMBER, .number = 0 },
    { .name = "hidden_activation", .use = KEY_TEXT, .text = "silu" },
    { .name = "tensor_data_layout", .use = KEY_TEXT, .text = "Meta AI original pth" },
};

/* Is the value of known_keys[i] supported? */
static int check_key(const struct gguf *g, const char *key, size_t i, struct err *err)
{
    double number = 0;
    struct text_view text = { "", 0 };

    if (known_keys[i].use == KEY_NUMBER) {
        if (gguf_want_real(g, key, &number, err))
            return err->code;
        if (number != known_keys[i].number)
            return err_set(err, ERR_FORMAT, "key '%s' is %g; only %g is supported", key, number, known_keys[i].number);
    } else if (known_keys[i].use == KEY_TEXT) {
        if (gguf_want_text(g, key, &text, err))
            return err->code;
        if (!text_view_is(text, known_keys[i].text))
            return err_set(err, ERR_FORMAT, "key '%s' is '%.*s'; only '%s' is supported", key,
                           text_view_width(text, 64), text.at, known_keys[i].text);
    }
    return 0;
}

static bool is_multiplier(const struct model *m, const char *name)
{
    for (int i = 0; m->family->multiplies && i < MULTIPLIERS; i++)
        if (strcmp(name, model_multipliers_gguf[i]) == 0)
            return true;
    return false;
}

static int check_keys(const struct model *m, const struct gguf *g, struct err *err)
{
    const struct model_config *c = &m->config;
    const size_t prefix = strlen(c->arch) + 1, n = sizeof(known_keys) / sizeof(*known_keys);

    for (int k = 0; k < g->n_values; k++) {
        const char *key = g->keys.at[k].key;
        size_t i = 0;
        if (strncmp(key, c->arch, prefix - 1) != 0 || key[prefix - 1] != '.')
            continue;
        while (i < n && strcmp(known_keys[i].name, key + prefix) != 0)
            i++;
        if (m->pictures && (strcmp(key + prefix, "rope.dimension_sections") == 0 ||
                            strcmp(key + prefix, "n_deepstack_layers") == 0)) // how pictures come into the text
            continue;
        if (i == n || (known_keys[i].use == KEY_PATTERN && !m->family->pattern))
            return err_set(err, ERR_FORMAT, "key '%.128s' is not supported", key);
        if (!is_multiplier(m, key + prefix) && check_key(g, key, i, err))
            return err->code;
    }
    return 0;
}

/* The family with experts of the same architecture, if the file has experts. */
static int read_mixed(struct model *m, const struct gguf *g, struct err *err)
{
    const struct arch_keys k = { g, m->config.arch };
    int experts = 1;

    if (!m->family->mixed || read_int(&k, "expert_count", 1, &experts, err))
        return m->family->mixed ? err->code : 0;
    if (experts > 1)
        m->family = model_family(m->family->mixed, err);
    return 0;
}

static int read_arch(struct model *m, const struct gguf *g, struct err *err)
{
    struct text_view arch, name = { "", 0 };
    struct model_config *c = &m->config;
    char full[80];

    if (gguf_want_text(g, "general.architecture", &arch, err) || gguf_may_text(g, "general.name", &name, err))
        return err->code;
    snprintf(full, sizeof(full), "%.*s", text_view_width(arch, 64), arch.at);
    m->family = model_family_gguf(full, err);
    if (!m->family)
        return err->code;
    snprintf(c->arch, sizeof(c->arch), "%s", m->family->gguf);
    m->pictures = m->family->text;
    if (m->pictures)
        m->family = model_family(m->family->text, err);
    snprintf(c->name, sizeof(c->name), "%.*s", text_view_width(name, 64), name.at);
    return read_mixed(m, g, err);
}

/* The roles of the model: its family's, and biases if layer 0 has them. */
static void read_roles(struct model *m)
{
    uint64_t may = m->family->bias | m->family->mlp_bias;
    char name[MODEL_TENSOR_NAME];

    m->config.roles = m->family->roles;
    m->config.clamped = m->family->clamped;
    m->config.cap = m->family->cap;
    m->config.logit_cap = m->family->logit_cap;
    for (int role = 0; role < TENSOR_ROLES; role++) {
        snprintf(name, sizeof(name), "blk.0.%s", family_gguf_tensor(m->family, (enum tensor_role)role));
        if (may & ROLE(role) && find_tensor(m, name))
            m->config.roles |= ROLE(role);
    }
}

static int read_mlp(struct model_config *c, const struct arch_keys *k, struct err *err)
{
    int experts, ff;

    if (model_has(c, TENSOR_ROUTER)) {
        c->renormalise = true; // as in llama.cpp; there is no key for it
        return read_int(k, "expert_count", 0, &c->n_experts, err) ||
                       read_int(k, "expert_used_count", 0, &c->n_experts_used, err) ||
                       read_int(k, "feed_forward_length", 1, &ff, err) ||
                       read_int(k, "expert_feed_forward_length", ff ? ff : 1, &c->expert_ff, err)
                   ? err->code
                   : 0;
    }
    if (read_int(k, "feed_forward_length", 0, &c->d_ff, err) || read_int(k, "expert_count", 1, &experts, err))
        return err->code;
    return experts > 1 ? err_set(err, ERR_FORMAT, "a mixture of %d experts is not supported in architecture '%s'",
                                 experts, k->arch)
                       : 0;
}

static int read_shape(struct model *m, const struct gguf *g, struct err *err)
{
    struct model_config *c = &m->config;
    const struct arch_keys k = { g, c->arch };
    int value_dims;

    if (read_int(&k, "block_count", 0, &c->n_layers, err) || read_int(&k, "embedding_length", 0, &c->d_model, err) ||
        read_mlp(c, &k, err) || read_int(&k, "context_length", 0, &c->max_tokens, err) ||
        read_int(&k, "attention.head_count", 0, &c->n_heads, err) ||
        read_int(&k, "attention.head_count_kv", c->n_heads ? c->n_heads : 1, &c->n_kv_heads, err) ||
        read_int(&k, "attention.key_length", c->n_heads ? c->d_model / c->n_heads : 1, &c->head_dim, err) ||
        read_int(&k, "attention.value_length", c->n_heads ? c->d_model / c->n_heads : 1, &value_dims, err) ||
        read_int(&k, "rope.dimension_count", c->head_dim ? c->head_dim : 1, &c->rotary, err) ||
        read_real(&k, "attn_logit_softcapping", &c->cap, err) ||
        read_real(&k, "final_logit_softcapping", &c->logit_cap, err))
        return err->code;
    if (c->rotary != c->head_dim && !m->family->partial)
        return err_set(err, ERR_FORMAT, "rotating %d of %d dimensions is not supported", c->rotary, c->head_dim);
    for (int i = 0; m->family->multiplies && i < MULTIPLIERS; i++) {
        if (read_real(&k, model_multipliers_gguf[i], &c->multiplier[i], err))
            return err->code;
        if (c->multiplier[i] == 0 && i != MULTIPLY_SCORES)
            c->multiplier[i] = 1; // as in llama.cpp, where 0 is none
    }
    const bool largest = c->n_layers == 46 || c->n_layers == 62; // of Gemma 2 and 3
    if (m->family->gemma)                                        // as in llama.cpp: these two have another divisor
        model_set_gemma(c, largest && c->n_heads ? (double)c->d_model / c->n_heads : c->head_dim);
    model_unrotate(c, m->family->unrotated); // as in llama.cpp; there is no key for it
    if (value_dims != c->head_dim)
        return err_set(err, ERR_FORMAT, "values of %d dimensions with keys of %d are not supported", value_dims,
                       c->head_dim);
    return 0;
}

static int read_window(struct model *m, const struct gguf *g, struct err *err)
{
    const struct arch_keys k = { g, m->config.arch };
    int window, every = m->family->pattern;

    if (read_int(&k, "attention.sliding_window", m->family->cap > 0 ? m->family->window : INT_MAX, &window, err) ||
        read_int(&k, "attention.sliding_window_pattern", every ? every : INT_MAX, &every, err))
        return err->code;
    model_set_windowed(&m->config, every);
    model_set_window(&m->config, window);
    return 0;
}

static int read_yarn(struct model_config *c, const struct arch_keys *k, struct err *err)
{
    c->rope_low = 1;
    c->rope_high = 32;
    if (read_int(k, "rope.scaling.original_context_length", c->max_tokens, &c->rope_original, err) ||
        read_real(k, "rope.scaling.yarn_beta_slow", &c->rope_low, err) ||
        read_real(k, "rope.scaling.yarn_beta_fast", &c->rope_high, err))
        return err->code;
    c->rope_scaling = ROPE_YARN;
    c->rope_attention *= c->rope_factor > 1 ? 0.1 * log(c->rope_factor) + 1 : 1;
    c->max_tokens = (int)fmin(fmax(c->rope_factor * c->rope_original, 0), INT_MAX);
    return 0;
}

/* Phi-3's longrope has its divisors in two tensors, and no factor. */
static int read_longrope(struct model *m, const struct arch_keys *k, struct err *err)
{
    static const char *const names[] = { "rope_factors_short.weight", "rope_factors_long.weight" };
    struct model_config *c = &m->config;
    const int half = c->rotary / 2;

    m->rope_divisors = malloc(2 * (size_t)half * sizeof(float) + 1);
    if (!m->rope_divisors)
        return err_nomem(err);
    for (int i = 0; i < 2; i++) {
        const struct tensor *t = find_tensor(m, names[i]);
        if (!t || t->type != WEIGHT_F32 || t->n_dims != 1 || t->dim[0] != half)
            return err_set(err, ERR_FORMAT, "there is no tensor '%s' of %d divisors in F32", names[i], half);
        memcpy(m->rope_divisors + i * half, t->at, (size_t)half * sizeof(float));
        for (int j = 0; j < half; j++)
            if (!(m->rope_divisors[i * half + j] > 0 && isfinite(m->rope_divisors[i * half + j])))
                return err_set(err, ERR_FORMAT, "tensor '%s' has a number that is not above 0", names[i]);
    }
    c->rope_scaling = ROPE_LONGROPE;
    c->rope_divisors = m->rope_divisors;
    if (read_int(k, "rope.scaling.original_context_length", c->max_tokens, &c->rope_original, err))
        return err->code;
    c->rope_factor = fmax((double)c->max_tokens / c->rope_original, 1);
    return 0;
}

/* As in llama.cpp: scaling is linear unless the type says otherwise, scale_linear is the old name of the factor, and a
 * factor of 0 means no scaling. */
static int read_scaling(struct model *m, const struct arch_keys *k, struct err *err)
{
    struct text_view scaling = text_view_of("linear");
    struct model_config *c = &m->config;
    double factor = 0;
    char key[128];

    snprintf(key, sizeof(key), "%s.rope.scaling.type", c->arch);
    if (gguf_may_text(k->gguf, key, &scaling, err) || read_real(k, "rope.scale_linear", &factor, err) ||
        read_real(k, "rope.scaling.factor", &factor, err))
        return err->code;
    if (find_tensor(m, "rope_factors_long.weight") || text_view_is(scaling, "longrope"))
        return read_longrope(m, k, err);
    if (text_view_is(scaling, "none"))
        return 0;
    if (!text_view_is(scaling, "linear") && !text_view_is(scaling, "yarn"))
        return err_set(err, ERR_FORMAT, "rotary scaling '%.*s' is not supported (none, linear, yarn and longrope are)",
                       text_view_width(scaling, 64), scaling.at);
    if (factor == 0 || factor == 1)
        return 0;
    c->rope_factor = factor;
    if (text_view_is(scaling, "yarn"))
        return read_yarn(c, k, err);
    c->rope_scaling = ROPE_LINEAR;
    return 0;
}

static int read_rope(struct model *m, const struct gguf *g, struct err *err)
{
    struct model_config *c = &m->config;
    const struct arch_keys k = { g, c->arch };
    double eps;
    char key[128];

    c->rope_theta = 10000;
    c->rope_theta_window = m->family->theta_window;
    c->rope_attention = 1;
    c->rope_exact = m->family->yarn_exact;
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", c->arch);
    if (gguf_want_real(g, key, &eps, err))
        return err->code;
    c->norm_eps = (float)eps;
    if (read_real(&k, "rope.freq_base", &c->rope_theta, err) ||
        read_real(&k, "rope.freq_base_swa", &c->rope_theta_window, err) ||
        read_real(&k, "rope.scaling.attn_factor", &c->rope_attention, err))
        return err->code;
    return read_scaling(m, &k, err);
}

/* llama3 scaling divides the frequency of pair j by this. */
static double llama3_divisor(const struct model_config *c, int j)
{
    double wavelength = 2 * acos(-1) * pow(c->rope_theta, 2.0 * j / c->rotary);

    if (wavelength < c->rope_original / c->rope_high)
        return 1;
    if (wavelength > c->rope_original / c->rope_low)
        return c->rope_factor;
    double blend = (c->rope_original / wavelength - c->rope_low) / (c->rope_high - c->rope_low);
    return 1 / ((1 - blend) / c->rope_factor + blend);
}

/* GGUF stores llama3 scaling as a tensor of divisors, not as parameters. All published Llama 3.x models have low 1,
 * high 4 and 8192 original positions; the factor is the last divisor. Divisors of other parameters are refused. */
static int read_rope_divisors(struct model *m, struct err *err)
{
    struct model_config *c = &m->config;
    const struct tensor *t = find_tensor(m, MODEL_ROPE_DIVISORS);
    int half = c->rotary / 2;

    if (!t)
        return 0;
    if (c->rope_scaling != ROPE_PLAIN || t->type != WEIGHT_F32 || t->n_dims != 1 || t->dim[0] != half || half == 0)
        return err_set(err, ERR_FORMAT, "tensor '%s' is not %d divisors in F32 with a plain rotary base",
                       MODEL_ROPE_DIVISORS, half);
    c->rope_scaling = ROPE_LLAMA3;
    c->rope_low = 1;
    c->rope_high = 4;
    c->rope_original = 8192;
    float divisor;
    memcpy(&divisor, (const char *)t->at + 4 * (half - 1), sizeof(divisor));
    c->rope_factor = (double)divisor;
    for (int j = 0; j < half; j++) {
        memcpy(&divisor, (const char *)t->at + 4 * j, sizeof(divisor));
        double want = llama3_divisor(c, j);
        if (!(fabs((double)divisor - want) <= 1e-4 * want))
            return err_set(err, ERR_FORMAT, "the divisors in '%s' are not llama3's (%g at %d, not %g)",
                           MODEL_ROPE_DIVISORS, (double)divisor, j, want);
    }
    return 0;
}

static int read_config(struct model *m, struct err *err)
{
    const struct gguf *g = &m->gguf;

    if (read_arch(m, g, err))
        return err->code;
    read_roles(m);
    if (check_keys(m, g, err) || read_shape(m, g, err) || read_rope(m, g, err) || read_rope_divisors(m, err) ||
        read_window(m, g, err))
        return err->code;
    const struct tensor *embedding = find_tensor(m, model_roles[TENSOR_EMBEDDING].gguf_name);
    if (!embedding || embedding->n_dims != 2)
        return err_set(err, ERR_FORMAT, "no tensor '%s' of two dimensions", model_roles[TENSOR_EMBEDDING].gguf_name);
    m->config.n_vocab = (int)embedding->dim[0];
    m->config.tied = !find_tensor(m, model_roles[TENSOR_HEAD].gguf_name);
    return 0;
}

int gguf_model_parse(struct model *m, const void *bytes, size_t n, struct err *err)
{
    if (gguf_parse(&m->gguf, bytes, n, err) || open_files(m, err) || read_config(m, err) || add_tensors(m, err))
        return err_wrap(err, "'%s'", m->path);
    return 0;
}

int gguf_model_open(struct model *m, struct err *err)
{
    return file_map(&m->map, m->path, err) ? err->code : gguf_model_parse(m, m->map.at, m->map.n, err);
}

/* model_synthetic.c - models of published shapes with random weights: for measuring speed without a file.
 *
 * Reading a row of a tensor draws it from a random stream of its own, seeded by the tensor's name and the row. So
 * threads draw the same numbers in any order, and a model takes no memory. Matrices are uniform with variance
 * 1 / columns, so a product is about as large as its input and logits stay small; vectors (norms' weights) are uniform
 * around 1. Numbers are BF16, hence exact in f32.
 *
 * To add a shape: (1) its row in shapes[] of engine/model/model_synthetic.c.
 */
#include "base/digest.h"
#include "base/rng.h"
#include "engine/model/model_internal.h"
#include "codes/half.h"
#include "kernels/kv.h"

#include <math.h>
#include <string.h>

#define PREFIX "synthetic:"

enum { SEED = 1 };

static const struct model_config shapes[] = {
    { .name = PREFIX "llama-3.1-8b",
      .n_layers = 32,
      .d_model = 4096,
      .n_heads = 32,
      .n_kv_heads = 8,
      .head_dim = 128,
      .d_ff = 14336,
      .n_vocab = 128256,
      .max_tokens = 131072,
      .norm_eps = 1e-5f,
      .rope_theta = 500000,
      .rope_scaling = ROPE_LLAMA3,
      .rope_factor = 8,
      .rope_low = 1,
      .rope_high = 4,
      .rope_original = 8192 },
    { .name = PREFIX "smollm2-135m",
      .n_layers = 30,
      .d_model = 576,
      .n_heads = 9,
      .n_kv_heads = 3,
      .head_dim = 64,
      .d_ff = 1536,
      .n_vocab = 49152,
      .max_tokens = 8192,
      .norm_eps = 1e-5f,
      .rope_theta = 100000,
      .tied = true },
    { .name = PREFIX "qwen3-30b-a3b",
      .arch = "qwen3_moe",
      .n_layers = 48,
      .d_model = 2048,
      .n_heads = 32,
      .n_kv_heads = 4,
      .head_dim = 128,
      .n_vocab = 151936,
      .n_experts = 128,
      .n_experts_used = 8,
      .expert_ff = 768,
      .renormalise = true,
      .max_tokens = 40960,
      .norm_eps = 1e-6f,
      .rope_theta = 1e6 },
    { .name = PREFIX "tiny",
      .n_layers = 2,
      .d_model = 128,
      .n_heads = 4,
      .n_kv_heads = 2,
      .head_dim = 64,
      .d_ff = 256,
      .n_vocab = 512,
      .max_tokens = 65536,
      .norm_eps = 1e-5f,
      .rope_theta = 10000 },
    { .name = PREFIX "tiny-experts",
      .arch = "qwen3_moe",
      .n_layers = 2,
      .d_model = 128,
      .n_heads = 4,
      .n_kv_heads = 2,
      .head_dim = 64,
      .n_vocab = 512,
      .n_experts = 8,
      .n_experts_used = 2,
      .expert_ff = 64,
      .renormalise = true,
      .max_tokens = 65536,
      .norm_eps = 1e-6f,
      .rope_theta = 10000 },
};

bool model_is_synthetic(const char *path)
{
    return strncmp(path, PREFIX, strlen(PREFIX)) == 0;
}

/* ---- opening ------------------------------------------------------------ */

static const struct model_config *find_shape(const char *path, struct err *err)
{
    char known[256];
    size_t at = 0;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        if (strcmp(path, shapes[i].name) == 0)
            return &shapes[i];
        at += (size_t)snprintf(known + at, sizeof(known) - at, at ? ", %s" : "%s", shapes[i].name);
    }
    err_set(err, ERR_USAGE, "'%.64s' is not one of %s", path, known);
    return NULL;
}

static int add_tensor(struct model *m, enum tensor_role role, int index, struct err *err)
{
    const struct tensor_shape shape = model_shape(&m->config, role);
    char name[MODEL_TENSOR_NAME];
    struct tensor t = { .type = WEIGHT_BF16,
                        .n_dims = shape.rows == 1 ? 1 : 2,
                        .bytes = (uint64_t)shape.rows * (uint64_t)shape.cols * dtype_size(DTYPE_BF16) };

    t.dim[0] = shape.rows;
    t.dim[t.n_dims - 1] = shape.cols;
    model_tensor_name(name, m, role, index);
    if (model_add(m, name, &t, err))
        return err->code;
    m->tensor[m->n_tensors - 1].name = m->names.at[m->n_tensors - 1].key;
    return 0;
}

int synthetic_model_open(struct model *m, struct err *err)
{
    const struct model_config *shape = find_shape(m->path, err);

    if (!shape)
        return err->code;
    struct model_config *c = &m->config;
    size_t n_tensors = 0;
    m->synthetic = true;
    *c = *shape;
    if (!c->arch[0])
        snprintf(c->arch, sizeof(c->arch), "llama");
    m->family = model_family(c->arch, err);
    if (!m->family)
        return err->code;
    c->roles = m->family->roles;
    c->rotary = c->head_dim;
    c->rope_attention = 1;
    for (int role = 0; role < TENSOR_ROLES; role++)
        n_tensors += (size_t)model_count(c, (enum tensor_role)role);
    int code = model_reserve(m, n_tensors, err);
    for (int role = 0; role < TENSOR_ROLES && !code; role++) {
        int n = role == TENSOR_HEAD && c->tied ? 0 : model_count(c, (enum tensor_role)role);
        for (int i = 0; i < n && !code; i++)
            code = add_tensor(m, (enum tensor_role)role, i, err);
    }
    return code;
}

int synthetic_digest(const struct model *m, char hex[DIGEST_HEX], struct err *err)
{
    return digest_sha256(m->config.name, strlen(m->config.name), hex, err);
}

/* ---- numbers ------------------------------------------------------------ */

void synthetic_row(const struct tensor *t, int64_t row, enum dtype type, void *to)
{
    const size_t cols = (size_t)t->dim[t->n_dims - 1];
    const float middle = t->n_dims == 1 ? 1.0f : 0.0f; // uniform in middle +- width
    const float width = t->n_dims == 1 ? 0.25f : sqrtf(3.0f / (float)cols);
    struct rng rng = rng_new(rng_named(SEED, t->name).state + (uint64_t)row);
    float *to_f32 = to;
    uint16_t *to_bf16 = to;

    for (size_t i = 0; i < cols; i += 4) {
        uint64_t bits = rng_next(&rng); // for four numbers
        for (size_t j = i; j < i + 4 && j < cols; j++, bits >>= 16) {
            float x = (float)(int32_t)(bits & 0xffff) - 32767.5f;
            uint16_t rounded = bf16_from_f32(middle + width * (x * 0x1p-15f));
            if (type == DTYPE_F32)
                to_f32[j] = bf16_to_f32(rounded);
            else
                to_bf16[j] = rounded;
        }
    }
}

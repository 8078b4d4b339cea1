/* Writes a small random model. */
#include "tests/unit/tiny_model.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/safetensors.h"

#include <criterion/criterion.h>
#include <unistd.h>

enum { L = 2, D = 64, H = 4, G = 2, K = 32, F = 96, TENSORS = 9 * L + 3 };

static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"hidden_size\":64,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":32,"
    "\"intermediate_size\":96,\"vocab_size\":%d,\"max_position_embeddings\":%d,\"rms_norm_eps\":1e-05,"
    "\"rope_theta\":10000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
    "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":256},\"tie_word_embeddings\":false,"
    "\"eos_token_id\":[2,0]}";

static const struct {
    const char *name;
    int rows, cols; // cols 0: a vector
} per_layer[9] = {
    { "input_layernorm", D, 0 },     { "self_attn.q_proj", H *K, D }, { "self_attn.k_proj", G *K, D },
    { "self_attn.v_proj", G *K, D }, { "self_attn.o_proj", D, H *K }, { "post_attention_layernorm", D, 0 },
    { "mlp.gate_proj", F, D },       { "mlp.up_proj", F, D },         { "mlp.down_proj", D, F },
};

static struct st_tensor tensor(char name[96], int rows, int cols)
{
    return (struct st_tensor){ .name = name, .type = ST_F32, .n_dims = cols ? 2 : 1, .dim = { rows, cols } };
}

/* Matrices around zero with about the width that keeps a row's length; norms around one. */
static void write_values(FILE *f, const struct st_tensor *t)
{
    struct rng rng = rng_named(1, t->name);
    int64_t n = t->n_dims == 2 ? t->dim[0] * t->dim[1] : t->dim[0];

    for (int64_t i = 0; i < n; i++) {
        double u = rng_unit(&rng) - 0.5;
        float value = (float)(t->n_dims == 2 ? u * 0.5 : 1 + 0.4 * u);
        fwrite(&value, sizeof(value), 1, f);
    }
}

static void write_weights(const char *path, int n_vocab)
{
    static char name[TENSORS][96];
    struct st_tensor all[TENSORS];
    struct file_out out;
    struct err err;
    int n = 0;

    for (int l = 0; l < L; l++)
        for (int i = 0; i < 9; i++, n++) {
            snprintf(name[n], sizeof(name[n]), "model.layers.%d.%s.weight", l, per_layer[i].name);
            all[n] = tensor(name[n], per_layer[i].rows, per_layer[i].cols);
        }
    snprintf(name[n], sizeof(name[n]), "model.embed_tokens.weight");
    snprintf(name[n + 1], sizeof(name[n + 1]), "model.norm.weight");
    snprintf(name[n + 2], sizeof(name[n + 2]), "lm_head.weight");
    all[n] = tensor(name[n], n_vocab, D);
    all[n + 1] = tensor(name[n + 1], D, 0);
    all[n + 2] = tensor(name[n + 2], n_vocab, D);
    cr_assert_eq(file_create(&out, path, &err), 0, "%s", err.msg);
    cr_assert_eq(safetensors_write_header(&out, &(struct st_header){ .tensor = all, .n = TENSORS }, &err), 0, "%s",
                 err.msg);
    for (int i = 0; i < TENSORS; i++)
        write_values(out.f, &all[i]);
    cr_assert_eq(file_commit(&out, &err), 0, "%s", err.msg);
}

static const char *const copied[] = { "tokenizer.json", "tokenizer_config.json" };

static void make(char path[64], int max_tokens, int n_vocab)
{
    char json[sizeof(config) + 16];
    struct err err;

    snprintf(path, 64, "/tmp/evp-tiny-XXXXXX");
    cr_assert(mkdtemp(path));
    char *at = file_join(path, "config.json");
    snprintf(json, sizeof(json), config, n_vocab, max_tokens);
    cr_assert_eq(file_write(at, json, strlen(json), &err), 0, "%s", err.msg);
    free(at);
    at = file_join(path, "model.safetensors");
    write_weights(at, n_vocab);
    free(at);
    for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++) {
        char from[128];
        struct buf text = { 0 };
        snprintf(from, sizeof(from), "tests/data/tiny/%s", copied[i]);
        cr_assert_eq(file_read(&text, from, 1 << 20, &err), 0, "%s", err.msg);
        at = file_join(path, copied[i]);
        cr_assert_eq(file_write(at, text.at, text.n, &err), 0, "%s", err.msg);
        free(at);
        buf_release(&text);
    }
}

void tiny_model_make(char path[64])
{
    make(path, TINY_MAX_TOKENS, TINY_VOCAB);
}

void tiny_model_make_long(char path[64], int max_tokens)
{
    make(path, max_tokens, TINY_VOCAB);
}

void tiny_model_make_wide(char path[64], int n_vocab)
{
    make(path, TINY_MAX_TOKENS, n_vocab);
}

void tiny_model_remove(const char *path)
{
    static const char *const files[] = { "config.json", "model.safetensors", "tokenizer.json",
                                         "tokenizer_config.json" };

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *at = file_join(path, files[i]);
        unlink(at);
        free(at);
    }
    rmdir(path);
}

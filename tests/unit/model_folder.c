/* Folders of a model: what config.json may say, and tensors that a plain Llama does not have. */
#include "base/file.h"
#include "base/safetensors.h"
#include "engine/model/model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- folders ------------------------------------------------------------ */

static void write_text(const char *dir, const char *name, const char *text)
{
    struct err err;
    char *path = file_join(dir, name);

    cr_assert_eq(file_write(path, text, strlen(text), &err), 0, "%s", err.msg);
    free(path);
}

/* A safetensors file of one tensor, whose data begin with `bytes` and go on with zeros. */
static void write_tensor(const char *dir, const char *name, struct st_tensor t, const void *bytes, size_t n)
{
    struct st_header header = { .tensor = &t, .n = 1 };
    struct file_out out;
    struct err err;
    char *path = file_join(dir, name);

    cr_assert_eq(file_create(&out, path, &err), 0, "%s", err.msg);
    cr_assert_eq(safetensors_write_header(&out, &header, &err), 0, "%s", err.msg);
    fwrite(bytes, 1, n, out.f);
    cr_assert_eq(file_commit(&out, &err), 0, "%s", err.msg);
    free(path);
}

/* A folder that sees the tiny model's weights. */
static void make_folder(char dir[64])
{
    static const char *const files[] = { "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                         "model.safetensors.index.json" };
    char *here = getcwd(NULL, 0);

    snprintf(dir, 64, "/tmp/folder.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < 3; i++) {
        struct buf from = { 0 };
        char *to = file_join(dir, files[i]);
        buf_printf(&from, "%s/tests/data/tiny/%s", here, files[i]);
        cr_assert_eq(symlink(buf_str(&from), to), 0);
        free(to);
        buf_release(&from);
    }
    free(here);
}

static void remove_folder(const char *dir)
{
    static const char *const files[] = { "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors",
                                         "model.safetensors.index.json",
                                         "config.json",
                                         "extra.safetensors",
                                         "adapter_config.json",
                                         "model.safetensors" };

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = file_join(dir, files[i]);
        unlink(path);
        free(path);
    }
    rmdir(dir);
}

/* A folder with the tiny model's weights and this config; NULL and err when it does not open. */
static struct model *open_config(const char *config, struct err *err)
{
    char dir[64];

    make_folder(dir);
    write_text(dir, "config.json", config);
    struct model *m = model_open(dir, err);
    remove_folder(dir);
    return m;
}

/* ---- config.json ------------------------------------------------------- */

#define BASIC                                                                                                          \
    "\"model_type\":\"llama\",\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":2,"                   \
    "\"intermediate_size\":64,\"vocab_size\":271,\"max_position_embeddings\":256,\"tie_word_embeddings\":true,"        \
    "\"rms_norm_eps\":1e-5"

Test(model_folder, reads_the_rotary_scalings_of_config_json)
{
    struct err err;
    struct model *m = open_config("{" BASIC ",\"num_key_value_heads\":1,\"rope_theta\":5e5,\"rope_scaling\":{"
                                  "\"type\":\"linear\",\"factor\":8.0}}",
                                  &err);

    cr_assert_not_null(m, "%s", err.msg);
    cr_assert(model_config(m)->rope_scaling == ROPE_LINEAR && model_config(m)->rope_factor == 8.0);
    cr_assert_eq(model_config(m)->rope_theta, 5e5);
    model_close(m);
    m = open_config("{" BASIC ",\"num_key_value_heads\":1,\"head_dim\":16,\"rope_parameters\":{\"rope_theta\":1e6,"
                    "\"rope_type\":\"llama3\",\"factor\":32.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                    "\"original_max_position_embeddings\":8192}}",
                    &err);
    cr_assert_not_null(m, "%s", err.msg);
    const struct model_config *c = model_config(m);
    cr_assert(c->rope_scaling == ROPE_LLAMA3 && c->rope_factor == 32 && c->rope_low == 1 && c->rope_high == 4);
    cr_assert(c->rope_original == 8192 && c->rope_theta == 1e6 && c->head_dim == 16);
    model_close(m);
    m = open_config("{" BASIC ",\"num_key_value_heads\":1,\"sliding_window\":100,\"rope_scaling\":null}", &err);
    cr_assert(m && model_config(m)->window == 100);
    model_close(m);
}

/* Under either name; what is no such name is nothing that this engine reads. */
Test(model_folder, knows_what_config_json_would_compute_in)
{
    static const char *const has[][2] = { { "", "" },
                                          { ",\"torch_dtype\":\"float16\"", "float16" },
                                          { ",\"dtype\":\"bfloat16\",\"torch_dtype\":\"float32\"", "bfloat16" },
                                          { ",\"dtype\":null,\"torch_dtype\":\"float32\"", "float32" },
                                          { ",\"torch_dtype\":16", "" },
                                          { ",\"torch_dtype\":\"0123456789abcdef\"", "" } };

    for (size_t i = 0; i < sizeof(has) / sizeof(*has); i++) {
        char text[512];
        struct err err;
        snprintf(text, sizeof(text), "{" BASIC ",\"num_key_value_heads\":1%s}", has[i][0]);
        struct model *m = open_config(text, &err);
        cr_assert_not_null(m, "%s", err.msg);
        cr_assert_str_eq(model_config(m)->dtype, has[i][1]);
        model_close(m);
    }
}

Test(model_folder, refuses_configs)
{
    static const char *const bad[][2] = {
        { "{\"model_type\":\"gpt_neox\"}", "architecture 'gpt_neox' is not supported" },
        { "{" BASIC ",\"num_key_value_heads\":1,\"rope_scaling\":{\"type\":\"ntk\"}}", "rotary scaling 'ntk'" },
        { "{" BASIC ",\"num_key_value_heads\":1,\"attention_bias\":true}",
          "has no tensor 'model.layers.0.self_attn.q_proj.bias'" },
        { "{" BASIC ",\"num_key_value_heads\":1,\"mlp_bias\":true}",
          "has no tensor 'model.layers.0.mlp.gate_proj.bias'" },
        { "{" BASIC ",\"num_key_value_heads\":1,\"hidden_act\":\"gelu\"}", "activation 'gelu'" },
        { "{" BASIC ",\"num_key_value_heads\":1,\"quantization_config\":{}}", "field 'quant_method' is missing" },
        { "{" BASIC ",\"num_key_value_heads\":-1}", "field 'num_key_value_heads' is -1" },
        { "{" BASIC ",\"num_key_value_heads\":2}", "is 16 x 32, not 32 x 32" },
        { "{" BASIC ",\"head_dim\":1e10}", "field 'head_dim' is 10000000000" },
        { "{\"model_type\":\"llama\"}", "field 'num_hidden_layers' is missing" },
        { "[]", "field 'model_type' is missing" },
        { "{", "malformed JSON" },
    };
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        cr_assert_null(open_config(bad[i][0], &err), "%s", bad[i][0]);
        cr_assert(err.code == ERR_FORMAT && strstr(err.msg, bad[i][1]), "%s: %s", bad[i][0], err.msg);
        cr_assert(strstr(err.msg, "/tmp/folder."), "%s", err.msg);
    }
}

/* What transformers writes and reads for training and generation, and what says that a plain Llama is one. */
Test(model_folder, harmless_fields_are_passed_over)
{
    struct err err;
    struct model *m = open_config(
        "{" BASIC ",\"num_key_value_heads\":1,\"architectures\":[\"LlamaForCausalLM\"],\"attention_dropout\":0.1,"
        "\"attention_bias\":false,\"mlp_bias\":null,\"pretraining_tp\":2,\"torch_dtype\":\"bfloat16\",\"use_cache\":"
        "true,"
        "\"partial_rotary_factor\":1.0,\"logits_scaling\":1,\"is_llama_config\":true,\"rope_interleaved\":false,"
        "\"layer_types\":[\"full_attention\"],\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5,"
        "\"partial_rotary_factor\":1.0,\"attention_factor\":null},\"transformers_version\":\"5.0.0\"}",
        &err);

    cr_assert_not_null(m, "%s", err.msg);
    cr_assert(model_config(m)->rope_theta == 5e5 && model_config(m)->rope_scaling == ROPE_PLAIN);
    model_close(m);
}

Test(model_folder, fields_that_change_the_computation_are_refused)
{
    static const char *const bad[][2] = {
        { "\"partial_rotary_factor\":0.5", "field 'partial_rotary_factor' is 0.5, which is not supported" },
        { "\"lm_head_bias\":true", "field 'lm_head_bias' has a value" },
        { "\"residual_multiplier\":0.22", "field 'residual_multiplier' has a value" },
        { "\"attention_multiplier\":0.25", "field 'attention_multiplier' has a value" },
        { "\"final_logit_softcapping\":30.0", "field 'final_logit_softcapping' has a value" },
        { "\"is_causal\":false", "field 'is_causal' has a value" },
        { "\"use_qk_norm\":true", "field 'use_qk_norm' has a value" },
        { "\"no_rope_layers\":[1]", "field 'no_rope_layers' has a value" },
        { "\"layer_types\":[\"linear_attention\"]", "field 'layer_types' has 'linear_attention'" },
        { "\"layer_types\":[3]", "field 'layer_types' has 'no text'" },
        { "\"layer_types\":[\"sliding_attention\"]", "'sliding_attention' without a 'sliding_window'" },
        { "\"layer_types\":[\"full_attention\",\"full_attention\"]", "field 'layer_types' does not have 1 texts" },
        { "\"sliding_window\":0", "field 'sliding_window' is 0" },
        { "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"mrope_section\":[1]}", "scaling with 'mrope_section'" },
        { "\"rope_scaling\":{\"type\":\"default\",\"partial_rotary_factor\":0.5}",
          "field 'partial_rotary_factor' is 0.5" },
        { "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6}}", "scaling with 'full_attention'" },
        { "\"rope_parameters\":{\"rope_type\":\"default\"},\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}",
          "'rope_parameters' and 'rope_scaling' do not agree" },
    };
    struct err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct buf config = { 0 };
        buf_printf(&config, "{%s,\"num_key_value_heads\":1,%s}", BASIC, bad[i][0]);
        cr_assert_null(open_config(buf_str(&config), &err), "%s", bad[i][0]);
        cr_assert(err.code == ERR_FORMAT && strstr(err.msg, bad[i][1]), "%s: %s", bad[i][0], err.msg);
        buf_release(&config);
    }
}

Test(model_folder, a_window_that_is_used)
{
    static const struct {
        const char *fields;
        int window;
    } at[] = {
        { "\"sliding_window\":100", 100 },
        { "\"sliding_window\":256", 0 }, /* no text is longer */
        { "\"sliding_window\":257", 0 },
        { "\"sliding_window\":null", 0 },
        { "\"sliding_window\":100,\"use_sliding_window\":false", 0 },
        { "\"sliding_window\":100,\"use_sliding_window\":true", 100 },
        { "\"sliding_window\":100,\"layer_types\":[\"full_attention\"]", 0 },
        { "\"sliding_window\":100,\"layer_types\":[\"sliding_attention\"]", 100 },
    };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct buf config = { 0 };
        struct err err;
        buf_printf(&config, "{%s,\"num_key_value_heads\":1,%s}", BASIC, at[i].fields);
        struct model *m = open_config(buf_str(&config), &err);
        cr_assert_not_null(m, "%s: %s", at[i].fields, err.msg);
        const struct model_config *c = model_config(m);
        cr_assert(c->max_tokens == 256 && c->window == at[i].window, "%s: %d", at[i].fields, c->window);
        cr_assert_eq(model_window(c, 0), at[i].window);
        model_close(m);
        buf_release(&config);
    }
}

/* Mistral's default, which a hand-written config.json may rely on. */
Test(model_folder, a_mistral_without_the_field_has_a_window)
{
    static const char shape[] =
        "\"model_type\":\"mistral\",\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"intermediate_size\":64,\"vocab_size\":271,\"max_position_embeddings\":32768,"
        "\"tie_word_embeddings\":true,\"rms_norm_eps\":1e-5";

    for (int given = 0; given < 2; given++) {
        struct buf config = { 0 };
        struct err err;
        buf_printf(&config, "{%s%s}", shape, given ? ",\"sliding_window\":null" : "");
        struct model *m = open_config(buf_str(&config), &err);
        cr_assert_not_null(m, "%s", err.msg);
        cr_assert_eq(model_config(m)->max_tokens, 32768);
        cr_assert_eq(model_config(m)->window, given ? 0 : 4096);
        model_close(m);
        buf_release(&config);
    }
}

/* ---- tensors ------------------------------------------------------------- */

static const char plain[] = "{" BASIC ",\"num_key_value_heads\":1}";

/* Opens the tiny model with one more tensor. */
static struct model *open_extra(struct st_tensor t, const void *bytes, size_t n, struct err *err)
{
    char dir[64];

    make_folder(dir);
    write_text(dir, "config.json", plain);
    write_tensor(dir, "extra.safetensors", t, bytes, n);
    char *index = file_join(dir, "model.safetensors.index.json");
    unlink(index);
    free(index);
    write_text(dir, "model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\"b\":\"extra.safetensors\","
               "\"c\":\"model-00002-of-00002.safetensors\"}}");
    struct model *m = model_open(dir, err);
    remove_folder(dir);
    return m;
}

Test(model_folder, tensors_that_no_role_reads_are_refused)
{
    static const struct {
        struct st_tensor t;
        const char *why;
    } at[] = {
        { { .name = "model.layers.0.self_attn.q_proj.bias", .type = ST_F32, .n_dims = 1, .dim = { 4 } },
          "tensor 'model.layers.0.self_attn.q_proj.bias' is not supported" },
        { { .name = "model.layers.1.input_layernorm.weight", .type = ST_F32, .n_dims = 1, .dim = { 4 } },
          "tensor 'model.layers.1.input_layernorm.weight' is not supported" },
        { { .name = "rope_freqs.weight", .type = ST_F32, .n_dims = 1, .dim = { 4 } },
          "tensor 'rope_freqs.weight' is not supported" },
        { { .name = "model.layers.0.mlp.up_proj.g_idx", .type = ST_I32, .n_dims = 1, .dim = { 4 } },
          "tensor 'model.layers.0.mlp.up_proj.g_idx' of type I32 and 1 dimensions is not supported" },
        { { .name = "model.layers.0.self_attn.k_scale", .type = ST_F32, .n_dims = 0 },
          "tensor 'model.layers.0.self_attn.k_scale' of type F32 and 0 dimensions is not supported" },
    };
    static const char zeros[16] = "";

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct err err;
        struct model *m = open_extra(at[i].t, zeros, at[i].t.n_dims ? 16 : 4, &err);
        cr_assert_null(m, "not refused: %s", at[i].why);
        cr_assert(err.code == ERR_FORMAT && strstr(err.msg, at[i].why), "%s", err.msg);
    }
}

Test(model_folder, rotary_tables_are_passed_over)
{
    static const char zeros[64] = "";
    struct st_tensor t = {
        .name = "model.layers.0.self_attn.rotary_emb.inv_freq", .type = ST_F32, .n_dims = 1, .dim = { 8 }
    };
    struct err err;
    struct model *m = open_extra(t, zeros, 32, &err);

    cr_assert_not_null(m, "%s", err.msg);
    model_close(m);
    t.type = ST_I64; /* as an integer too, whatever it is good for */
    m = open_extra(t, zeros, 64, &err);
    cr_assert_not_null(m, "%s", err.msg);
    model_close(m);
}

/* A tied model may carry its output matrix, if that is the embedding. */
Test(model_folder, a_tied_models_output_matrix_is_its_embedding)
{
    enum { BYTES = 271 * 32 * 2 };
    static char copy[BYTES];
    struct st_tensor t = { .name = "lm_head.weight", .type = ST_BF16, .n_dims = 2, .dim = { 271, 32 } };
    struct err err;
    struct model *m = model_open("tests/data/tiny", &err);

    cr_assert_not_null(m, "%s", err.msg);
    for (int i = 0; i < model_n_tensors(m); i++)
        if (strcmp(model_tensor(m, i)->name, "model.embed_tokens.weight") == 0)
            memcpy(copy, model_tensor(m, i)->at, BYTES);
    model_close(m);
    m = open_extra(t, copy, BYTES, &err);
    cr_assert_not_null(m, "%s", err.msg);
    model_close(m);
    copy[BYTES - 1] ^= 1;
    cr_assert_null(open_extra(t, copy, BYTES, &err));
    cr_assert(strstr(err.msg, "tensor 'lm_head.weight' is not supported"), "%s", err.msg);
}

Test(model_folder, an_adapter_is_refused)
{
    char dir[64];
    struct err err;

    make_folder(dir);
    write_text(dir, "config.json", plain);
    write_text(dir, "adapter_config.json", "{}");
    cr_assert_null(model_open(dir, &err));
    cr_assert(strstr(err.msg, "has an adapter ('adapter_config.json')"), "%s", err.msg);
    remove_folder(dir);
}

Test(model_folder, one_file_counts_before_an_index)
{
    char dir[64];
    struct err err;

    make_folder(dir);
    write_text(dir, "config.json", plain);
    write_text(dir, "model.safetensors", "short");
    cr_assert_null(model_open(dir, &err));
    cr_assert(strstr(err.msg, "/model.safetensors'"), "%s", err.msg);
    remove_folder(dir);
}

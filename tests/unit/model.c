/* Model files: number formats, both containers, and what must be refused. tests/data/tiny.py made the files. */
#include "base/file.h"
#include "base/map.h"
#include "engine/model/dequant.h"
#include "engine/model/gguf.h"
#include "engine/model/model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- number formats ---------------------------------------------------- */

/* A block whose nibbles are 0..15 in the low halves and 15..0 in the high ones. */
static void ramp(uint8_t *p)
{
    for (int j = 0; j < 16; j++)
        p[j] = (uint8_t)(j | (15 - j) << 4);
}

Test(dequant, blocks)
{
    float x[32];
    uint8_t q8[34] = { 0x00, 0x38, 0x80, 0x7f, 0x01 }; /* d = 0.5; -128, 127, 1 */
    dequant(WEIGHT_Q8_0, q8, 32, x);
    cr_assert(x[0] == -64.0f && x[1] == 63.5f && x[2] == 0.5f && x[31] == 0.0f);

    uint8_t q4_0[18] = { 0x00, 0x40 }; /* d = 2 */
    ramp(q4_0 + 2);
    dequant(WEIGHT_Q4_0, q4_0, 32, x);
    cr_assert(x[0] == -16.0f && x[15] == 14.0f && x[16] == 14.0f && x[31] == -16.0f);

    uint8_t q4_1[20] = { 0x00, 0x40, 0x00, 0xbc }; /* d = 2, m = -1 */
    ramp(q4_1 + 4);
    dequant(WEIGHT_Q4_1, q4_1, 32, x);
    cr_assert(x[0] == -1.0f && x[15] == 29.0f && x[16] == 29.0f && x[31] == -1.0f);

    uint8_t q5_0[22] = { 0x00, 0x3c, 0x01, 0x00, 0x00, 0x80 }; /* d = 1; elements 0 and 31 have the fifth bit */
    ramp(q5_0 + 6);
    dequant(WEIGHT_Q5_0, q5_0, 32, x);
    cr_assert(x[0] == 0.0f && x[1] == -15.0f && x[30] == -15.0f && x[31] == 0.0f);

    uint8_t q5_1[24] = { 0x00, 0x3c, 0x00, 0x42, 0x00, 0x00, 0x01, 0x00 }; /* d = 1, m = 3; element 16 */
    ramp(q5_1 + 8);
    dequant(WEIGHT_Q5_1, q5_1, 32, x);
    cr_assert(x[0] == 3.0f && x[15] == 18.0f && x[16] == 34.0f && x[31] == 3.0f);
}

Test(dequant, halves)
{
    const uint8_t f16[] = { 0x00, 0x3c, 0x01, 0x00, 0xff, 0xfb, 0x00, 0x80 }, bf16[] = { 0x80, 0x3f, 0x20, 0xc1 };
    float x[4];

    dequant(WEIGHT_F16, f16, 4, x);
    cr_assert(x[0] == 1.0f && x[1] == 0x1p-24f && x[2] == -65504.0f && x[3] == 0.0f);
    dequant(WEIGHT_BF16, bf16, 2, x);
    cr_assert(x[0] == 1.0f && x[1] == -10.0f);
}

/* ---- the two containers ------------------------------------------------ */

Test(model, gguf_and_folder_hold_the_same)
{
    static const struct tensor_shape shape[TENSOR_ROLES] = {
        [TENSOR_ATTENTION_NORM] = { 1, 32 },
        [TENSOR_Q] = { 32, 32 },
        [TENSOR_K] = { 16, 32 },
        [TENSOR_V] = { 16, 32 },
        [TENSOR_O] = { 32, 32 },
        [TENSOR_MLP_NORM] = { 1, 32 },
        [TENSOR_GATE] = { 64, 32 },
        [TENSOR_UP] = { 64, 32 },
        [TENSOR_DOWN] = { 32, 64 },
        [TENSOR_EMBEDDING] = { 271, 32 },
        [TENSOR_NORM] = { 1, 32 },
        [TENSOR_HEAD] = { 271, 32 }, // the embedding: the model is tied
    };
    struct err err;
    struct model *a = model_open("tests/data/tiny.gguf", &err), *b = model_open("tests/data/tiny", &err);
    static float x[271 * 32], y[271 * 32];

    cr_assert(a && b, "%s", err.msg);
    for (int i = 0; i < TENSOR_ROLES; i++) {
        if (!model_has(model_config(a), (enum tensor_role)i)) {
            cr_assert(!shape[i].cols && !model_has(model_config(b), (enum tensor_role)i), "role %d", i);
            continue;
        }
        struct tensor_shape s = model_shape(model_config(a), (enum tensor_role)i);
        cr_assert(s.rows == shape[i].rows && s.cols == shape[i].cols, "role %d is %d x %d", i, s.rows, s.cols);
        cr_assert_eq(model_read(a, (enum tensor_role)i, 0, x, &err), 0, "%s", err.msg);
        cr_assert_eq(model_read(b, (enum tensor_role)i, 0, y, &err), 0, "%s", err.msg);
        cr_assert_eq(memcmp(x, y, (size_t)(s.rows * s.cols) * sizeof(*x)), 0, "role %d", i);
    }
    const struct model_config *c = model_config(a), *d = model_config(b);
    cr_assert(c->n_layers == 1 && c->d_model == 32 && c->n_heads == 2 && c->n_kv_heads == 1 && c->head_dim == 16);
    cr_assert(c->d_ff == 64 && c->n_vocab == 271 && c->max_tokens == 256 && c->tied && c->rope_theta == 10000);
    cr_assert(d->head_dim == 16 && d->n_vocab == 271 && d->tied && d->rope_scaling == ROPE_PLAIN);
    cr_assert_float_eq(c->norm_eps, d->norm_eps, 1e-12f);
    cr_assert_eq(model_read(a, TENSOR_Q, 1, x, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "'tests/data/tiny.gguf' has no tensor 'model.layers.1.self_attn.q_proj.weight'");
    model_close(a);
    model_close(b);
}

/* ---- malformed GGUF ---------------------------------------------------- */

static struct buf contents(const char *path)
{
    struct buf b = { 0 };
    struct err err;

    cr_assert_eq(file_read(&b, path, 1 << 20, &err), 0, "run from the top folder: %s", err.msg);
    return b;
}

static struct buf tiny(void)
{
    return contents("tests/data/tiny.gguf");
}

/* The first place of n bytes in the file. */
static char *find(struct buf *b, const char *what, size_t n)
{
    char *at = memmem(b->at, b->n, what, n);

    cr_assert_not_null(at, "%s", what);
    return at;
}

/* The entry of a tensor in the table, after its name: u32 n_dims, u64 dim[2], u32 type, u64 offset. */
static char *entry(struct buf *b, const char *name)
{
    return find(b, name, strlen(name)) + strlen(name);
}

static void put(char *at, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (char)(v >> (8 * i) & 0xff);
}

static void refuses(struct buf *b, const char *why)
{
    struct gguf g;
    struct err err;

    cr_assert_eq(gguf_parse(&g, b->at, b->n, &err), ERR_FORMAT, "not refused: %s", why);
    cr_assert(strstr(err.msg, why), "'%s' does not say '%s'", err.msg, why);
    buf_release(b);
}

Test(gguf, refuses_tables_that_lie)
{
    struct buf b = tiny();
    put(entry(&b, "blk.0.ffn_down.weight"), 9, 4);
    refuses(&b, "9 dimensions");
    b = tiny();
    put(entry(&b, "blk.0.ffn_down.weight") + 4, 0, 8);
    refuses(&b, "a dimension of 0");
    b = tiny();
    put(entry(&b, "blk.0.ffn_down.weight") + 4, 1ull << 40, 8);
    refuses(&b, "a dimension of");
    b = tiny();
    put(entry(&b, "blk.0.ffn_down.weight") + 12, INT32_MAX, 8); /* more rows than bytes */
    refuses(&b, "is outside the");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 4, 33, 8);
    refuses(&b, "not whole Q4_0 blocks");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 20, 12, 4);
    refuses(&b, "'blk.0.ffn_gate.weight': its rows of 32 elements are not whole Q4_K blocks");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 20, 16, 4);
    refuses(&b, "'blk.0.ffn_gate.weight': its type IQ2_XXS is not supported");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 20, 999, 4);
    refuses(&b, "its type 999 is not supported");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 24, 1, 8);
    refuses(&b, "not a multiple of 32");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 24, 0, 8);
    refuses(&b, "overlap");
    b = tiny();
    put(entry(&b, "blk.0.ffn_gate.weight") + 24, ~31ull, 8);
    refuses(&b, "is outside the");
    b = tiny();
    memcpy(find(&b, "blk.0.ffn_gate", 14), "blk.0.attn_k\0e", 14);
    refuses(&b, "contains a NUL");
    b = tiny();
    memcpy(find(&b, "blk.0.attn_q.weight", 19), "blk.0.attn_k.weight", 19);
    refuses(&b, "two tensors have the name 'blk.0.attn_k.weight'");
}

Test(gguf, refuses_headers_that_lie)
{
    struct buf b = tiny();
    b.at[0] = 'g';
    refuses(&b, "not a GGUF file");
    b = tiny();
    b.at[4] = 9;
    refuses(&b, "GGUF version 9");
    b = tiny();
    put(b.at + 8, 1ull << 60, 8);
    refuses(&b, "tensors and");
    b = tiny();
    put(b.at + 16, b.n / 13, 8); /* more keys than there are: the table is read as keys */
    refuses(&b, "GGUF");
    b = tiny();
    put(b.at + 24, 1ull << 63, 8); /* the first key's length */
    refuses(&b, "key 0 is truncated, or its length is wrong");
    b = tiny();
    put(find(&b, "llama.block_count", 17) + 17, 77, 4);
    refuses(&b, "key 'llama.block_count': unknown type 77");
    b = tiny();
    put(find(&b, "tokenizer.ggml.token_type", 25) + 25 + 8, 1ull << 62, 8);
    refuses(&b, "an array of 4611686018427387904 elements");
    b = tiny();
    put(find(&b, "tokenizer.ggml.token_type", 25) + 25 + 4, 9, 4); /* an array of arrays */
    refuses(&b, "an array of unknown type 9");
}

Test(gguf, refuses_every_cut)
{
    struct buf b = tiny();
    struct gguf g;
    struct err err;

    for (size_t n = 0; n < b.n; n += n < 3000 ? 1 : 97) {
        char *exact = malloc(n + 1); /* so that the sanitizer sees one byte too far */
        memcpy(exact, b.at, n);
        cr_assert_eq(gguf_parse(&g, exact, n, &err), ERR_FORMAT, "%zu of %zu bytes pass", n, b.n);
        free(exact);
    }
    cr_assert_eq(gguf_parse(&g, b.at, b.n, &err), 0);
    gguf_release(&g);
    buf_release(&b);
}

/* ---- a model that says what cannot be ---------------------------------- */

static void refuses_model(struct buf *b, const char *why)
{
    char path[] = "/tmp/model.XXXXXX";
    struct err err;

    close(mkstemp(path));
    cr_assert_eq(file_write(path, b->at, b->n, &err), 0);
    cr_assert_null(model_open(path, &err), "not refused: %s", why);
    unlink(path);
    cr_assert(err.code == ERR_FORMAT && strstr(err.msg, why), "'%s' does not say '%s'", err.msg, why);
    buf_release(b);
}

Test(model, refuses_what_it_does_not_compute)
{
    struct buf b = tiny();
    memcpy(find(&b, "general.architecture", 20) + 20 + 12, "mamba", 5);
    refuses_model(&b, "architecture 'mamba' is not supported");
    b = tiny();
    put(find(&b, "llama.attention.head_count", 26) + 30, 3, 4);
    refuses_model(&b, "rotating 16 of 10 dimensions");
    b = tiny();
    put(find(&b, "llama.attention.head_count_kv", 29) + 33, 3, 4);
    refuses_model(&b, "key-value heads is 3; it can be 1 to 2");
    b = tiny();
    put(find(&b, "llama.feed_forward_length", 25) + 29, 96, 4);
    refuses_model(&b, "'blk.0.ffn_gate.weight' is 64 x 32, not 96 x 32");
    b = tiny();
    put(find(&b, "llama.block_count", 17) + 21, 2, 4);
    refuses_model(&b, "has no tensor 'model.layers.1.input_layernorm.weight'");
    b = tiny();
    put(find(&b, "llama.rope.freq_base", 20) + 24, 0x7fc00000, 4); /* nan */
    refuses_model(&b, "is out of range");
    b = tiny();
    memcpy(find(&b, "llama.context_length", 20), "other.context_length", 20);
    refuses_model(&b, "key 'llama.context_length' is missing");
    b = tiny();
    memcpy(find(&b, "llama.attention.layer_norm_rms", 30), "other.attention.layer_norm_rms", 30);
    refuses_model(&b, "key 'llama.attention.layer_norm_rms_epsilon' is missing");
}

Test(model, knows_llama3_scaling_by_its_divisors)
{
    struct err err;
    struct model *m = model_open("tests/data/tiny-llama3.gguf", &err);

    cr_assert_not_null(m, "%s", err.msg);
    const struct model_config *c = model_config(m);
    cr_assert(c->rope_scaling == ROPE_LLAMA3 && c->rope_factor == 32 && c->rope_low == 1 && c->rope_high == 4);
    cr_assert(c->rope_original == 8192 && c->rope_theta == 500000);
    model_close(m);
    struct buf b = contents("tests/data/tiny-llama3.gguf");
    put(find(&b, "llama.rope.freq_base", 20) + 24, 0x461c4000, 4); /* 10000: these divisors belong to another base */
    refuses_model(&b, "'rope_freqs.weight' are not llama3's");
    b = contents("tests/data/tiny-llama3.gguf");
    put(entry(&b, "rope_freqs.weight") + 4, 7, 8);
    refuses_model(&b, "is not 8 divisors in F32");
}

/* Keys and tensors of a GGUF file that a plain Llama does not have: read, known to be harmless, or refused by name. The
 * files are tests/data/tiny.gguf with more in them. */
#include "base/file.h"
#include "engine/model/gguf.h"
#include "engine/model/model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { U32 = 4, F32 = 6, BOOL = 7, TEXT = 8 }; // GGUF's types of values

/* What a file has besides. */
struct more {
    struct buf keys, tensors, data;
    unsigned n_keys, n_tensors;
};

static void put(struct buf *b, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        buf_addc(b, (char)(v >> (8 * i) & 0xff));
}

static void put_text(struct buf *b, const char *text, size_t n)
{
    put(b, n, 8);
    buf_add(b, text, n);
}

static void add_key(struct more *x, const char *name, int type, double number)
{
    float f = (float)number;
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    put_text(&x->keys, name, strlen(name));
    put(&x->keys, (uint64_t)type, 4);
    put(&x->keys, type == F32 ? bits : (uint64_t)number, type == BOOL ? 1 : 4);
    x->n_keys++;
}

static void add_text(struct more *x, const char *name, const char *text)
{
    put_text(&x->keys, name, strlen(name));
    put(&x->keys, TEXT, 4);
    put_text(&x->keys, text, strlen(text));
    x->n_keys++;
}

static struct buf tiny(void)
{
    struct buf b = { 0 };
    struct err err;

    cr_assert_eq(file_read(&b, "tests/data/tiny.gguf", 1 << 20, &err), 0, "run from the top folder: %s", err.msg);
    return b;
}

/* Bytes of all tensors' data in a file whose first tensor is at their start. */
static size_t data_bytes(const struct buf *b)
{
    struct gguf g;
    struct err err;

    cr_assert_eq(gguf_parse(&g, b->at, b->n, &err), 0, "%s", err.msg);
    size_t n = (size_t)(b->at + b->n - (const char *)g.tensor[0].at);
    gguf_release(&g);
    return n;
}

static void align(struct buf *b)
{
    while (b->n % 32)
        put(b, 0, 1);
}

/* A vector of n zeros after the tiny model's data. */
static void add_tensor(struct more *x, const char *name, size_t n)
{
    struct buf b = tiny();

    put_text(&x->tensors, name, strlen(name));
    put(&x->tensors, 1, 4);
    put(&x->tensors, n, 8);
    put(&x->tensors, 0, 4);
    put(&x->tensors, (data_bytes(&b) + 31) / 32 * 32 + x->data.n, 8);
    for (size_t i = 0; i < n; i++)
        put(&x->data, 0, 4);
    align(&x->data);
    x->n_tensors++;
    buf_release(&b);
}

/* A key whose text makes everything that is added a multiple of 32 bytes, so that the data stay aligned. */
static void add_filler(struct more *x)
{
    static const char zeros[32] = "", name[] = "filler";
    size_t n = x->keys.n + x->tensors.n + 8 + strlen(name) + 4 + 8;

    put_text(&x->keys, name, strlen(name));
    put(&x->keys, TEXT, 4);
    put_text(&x->keys, zeros, (32 - n % 32) % 32);
    x->n_keys++;
}

/* The tiny model with more in it. */
static struct buf make(struct more *x)
{
    struct buf old = tiny(), b = { 0 };
    char *table = memmem(old.at, old.n, "token_embd.weight", 17);
    size_t data = data_bytes(&old);

    cr_assert_not_null(table);
    table -= 8; /* the length of the first tensor's name */
    add_filler(x);
    buf_add(&b, old.at, 8);
    put(&b, (unsigned char)old.at[8] + x->n_tensors, 8);
    put(&b, (unsigned char)old.at[16] + x->n_keys, 8);
    buf_add(&b, x->keys.at, x->keys.n);
    buf_add(&b, old.at + 24, (size_t)(table - old.at) - 24);
    if (x->n_tensors)
        buf_add(&b, x->tensors.at, x->tensors.n);
    buf_add(&b, table, old.n - (size_t)(table - old.at));
    for (size_t n = data; n % 32; n++)
        put(&b, 0, 1);
    if (x->n_tensors)
        buf_add(&b, x->data.at, x->data.n);
    buf_release(&old);
    buf_release(&x->keys);
    buf_release(&x->tensors);
    buf_release(&x->data);
    *x = (struct more){ 0 };
    return b;
}

/* Opens the tiny model with more in it; NULL and *err when it is refused. */
static struct model *open_with(struct more *x, struct err *err)
{
    char path[] = "/tmp/model.XXXXXX";
    struct buf b = make(x);

    close(mkstemp(path));
    cr_assert_eq(file_write(path, b.at, b.n, err), 0);
    struct model *m = model_open(path, err);
    unlink(path);
    buf_release(&b);
    return m;
}

static void refuses(struct more *x, const char *why)
{
    struct err err;
    struct model *m = open_with(x, &err);

    cr_assert_null(m, "not refused: %s", why);
    cr_assert(err.code == ERR_FORMAT && strstr(err.msg, why), "'%s' does not say '%s'", err.msg, why);
}

static struct model_config config_with(struct more *x)
{
    struct err err;
    struct model *m = open_with(x, &err);

    cr_assert_not_null(m, "%s", err.msg);
    struct model_config c = *model_config(m);
    model_close(m);
    return c;
}

/* ---- tensors ------------------------------------------------------------ */

Test(model_keys, refuses_tensors_that_no_role_reads)
{
    static const char *const names[] = {
        "blk.0.attn_norm.bias",   "blk.0.attn_q_norm.weight", "blk.0.ffn_gate_exps.weight", "output.bias",
        "blk.1.attn_norm.weight", "blk.0.attn_q.scale",       "model.embed_tokens.bias",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct more x = { 0 };
        char why[64];
        add_tensor(&x, names[i], 32);
        snprintf(why, sizeof(why), "tensor '%s' is not supported", names[i]);
        refuses(&x, why);
    }
}

Test(model_keys, longrope_is_two_tensors_of_divisors)
{
    struct more x = { 0 };

    add_tensor(&x, "rope_factors_long.weight", 8);
    refuses(&x, "there is no tensor 'rope_factors_short.weight' of 8 divisors in F32");
    add_tensor(&x, "rope_factors_long.weight", 8);
    add_tensor(&x, "rope_factors_short.weight", 8);
    refuses(&x, "tensor 'rope_factors_short.weight' has a number that is not above 0");
    add_tensor(&x, "rope_factors_long.weight", 8);
    add_tensor(&x, "rope_factors_short.weight", 4);
    refuses(&x, "of 8 divisors in F32");
}

Test(model_keys, passes_over_rotary_tables)
{
    struct more x = { 0 };

    add_tensor(&x, "blk.0.attn_rot_embd.weight", 8);
    cr_assert_eq(config_with(&x).n_layers, 1);
}

/* ---- keys --------------------------------------------------------------- */

/* What converters write into files of published models. */
Test(model_keys, knows_what_published_files_say)
{
    struct more x = { 0 };

    add_key(&x, "llama.vocab_size", U32, 271);
    add_key(&x, "llama.attention.key_length", U32, 16);
    add_key(&x, "llama.attention.value_length", U32, 16);
    add_key(&x, "llama.expert_count", U32, 0);
    add_key(&x, "llama.expert_used_count", U32, 0);
    add_key(&x, "llama.attention.causal", BOOL, 1);
    add_key(&x, "llama.rope.scaling.finetuned", BOOL, 0);
    add_key(&x, "llama.rope.scaling.original_context_length", U32, 256);
    add_text(&x, "llama.rope.scaling.type", "none");
    add_text(&x, "llama.tensor_data_layout", "Meta AI original pth");
    add_key(&x, "general.file_type", U32, 2);
    add_key(&x, "general.sampling.temp", F32, 0.5);
    add_key(&x, "quantize.imatrix.entries_count", U32, 7);
    add_key(&x, "split.count", U32, 1);
    const struct model_config c = config_with(&x);
    cr_assert(c.rope_scaling == ROPE_PLAIN && c.max_tokens == 256 && c.window == 0);
}

Test(model_keys, refuses_keys_it_does_not_know)
{
    static const char *const names[] = {
        "llama.rope.scaling.yarn_log_multiplier", "llama.rope.dimension_sections", "llama.attention.key_length_mla",
        "llama.attention.temperature_scale",      "llama.expert_weights_scale",    "llama.new_in_some_future"
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct more x = { 0 };
        char why[64];
        add_key(&x, names[i], U32, 0);
        snprintf(why, sizeof(why), "key '%s' is not supported", names[i]);
        refuses(&x, why);
    }
}

Test(model_keys, refuses_values_it_does_not_compute)
{
    struct more x = { 0 };

    add_key(&x, "llama.attention.value_length", U32, 8);
    refuses(&x, "values of 8 dimensions with keys of 16 are not supported");
    add_key(&x, "llama.logit_scale", F32, 0.0625);
    refuses(&x, "key 'llama.logit_scale' is 0.0625; only 1 is supported");
    add_key(&x, "llama.attention.causal", BOOL, 0);
    refuses(&x, "key 'llama.attention.causal' is 0; only 1 is supported");
    add_key(&x, "llama.rope.scaling.yarn_ext_factor", F32, 2);
    refuses(&x, "key 'llama.rope.scaling.yarn_ext_factor' is 2; only 1 is supported");
    add_text(&x, "llama.attention.clamp_kqv", "no");
    refuses(&x, "key 'llama.attention.clamp_kqv' is not a number");
    add_text(&x, "llama.hidden_activation", "gelu");
    refuses(&x, "key 'llama.hidden_activation' is 'gelu'; only 'silu' is supported");
    add_key(&x, "llama.expert_count", U32, 8);
    refuses(&x, "key 'llama.expert_used_count' is missing"); /* a Mixtral */
    add_key(&x, "split.count", U32, 3);
    refuses(&x, "it is the first of 3 files ('split.count'), and its name does not end in '-00001-of-00003.gguf'");
}

/* ---- rotary scaling and the window --------------------------------------- */

Test(model_keys, honours_every_spelling_of_linear_scaling)
{
    struct more x = { 0 };

    add_key(&x, "llama.rope.scale_linear", F32, 8);
    struct model_config c = config_with(&x);
    cr_assert(c.rope_scaling == ROPE_LINEAR && c.rope_factor == 8);
    add_key(&x, "llama.rope.scaling.factor", F32, 4); /* without a type it is linear */
    c = config_with(&x);
    cr_assert(c.rope_scaling == ROPE_LINEAR && c.rope_factor == 4);
    add_key(&x, "llama.rope.scale_linear", F32, 8);
    add_key(&x, "llama.rope.scaling.factor", F32, 2); /* the newer name counts */
    add_text(&x, "llama.rope.scaling.type", "linear");
    c = config_with(&x);
    cr_assert(c.rope_scaling == ROPE_LINEAR && c.rope_factor == 2);
    add_key(&x, "llama.rope.scale_linear", F32, 8);
    add_text(&x, "llama.rope.scaling.type", "none");
    cr_assert_eq(config_with(&x).rope_scaling, ROPE_PLAIN);
    for (int factor = 0; factor < 2; factor++) {
        add_key(&x, "llama.rope.scale_linear", F32, factor);
        cr_assert_eq(config_with(&x).rope_scaling, ROPE_PLAIN);
    }
    add_text(&x, "llama.rope.scaling.type", "ntk");
    refuses(&x, "rotary scaling 'ntk' is not supported (none, linear, yarn and longrope are)");
    add_key(&x, "llama.rope.scale_linear", F32, 0.5);
    refuses(&x, "rotary scaling factor 0.5 is out of range");
}

Test(model_keys, yarn_stretches_what_fits)
{
    struct more x = { 0 };

    add_text(&x, "llama.rope.scaling.type", "yarn");
    add_key(&x, "llama.rope.scaling.factor", F32, 4);
    add_key(&x, "llama.rope.scaling.original_context_length", U32, 128);
    struct model_config c = config_with(&x);
    cr_assert(c.rope_scaling == ROPE_YARN && c.rope_factor == 4 && c.rope_original == 128 && c.max_tokens == 512);
    cr_assert(c.rope_low == 1 && c.rope_high == 32 && fabs(c.rope_attention - (1 + 0.1 * log(4))) < 1e-12);
    add_text(&x, "llama.rope.scaling.type", "yarn");
    add_key(&x, "llama.rope.scaling.factor", F32, 4);
    add_key(&x, "llama.rope.scaling.yarn_beta_fast", F32, 16);
    add_key(&x, "llama.rope.scaling.yarn_beta_slow", F32, 2);
    add_key(&x, "llama.rope.scaling.attn_factor", F32, 0.5);
    add_key(&x, "llama.attention.sliding_window", U32, 600);
    c = config_with(&x);
    cr_assert(c.rope_original == 256 && c.rope_low == 2 && c.rope_high == 16 && c.max_tokens == 1024);
    cr_assert(fabs(c.rope_attention - 0.5 * (1 + 0.1 * log(4))) < 1e-12);
    add_text(&x, "llama.rope.scaling.type", "yarn");
    add_key(&x, "llama.rope.scaling.factor", F32, 1e9);
    refuses(&x, "the context length is 2147483647");
}

Test(model_keys, a_window_below_the_context_length)
{
    static const struct {
        int given, window;
    } at[] = { { 0, 0 }, { 255, 255 }, { 256, 0 }, { 257, 0 } };

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct more x = { 0 };
        add_key(&x, "llama.attention.sliding_window", U32, at[i].given);
        const struct model_config c = config_with(&x);
        cr_assert(c.max_tokens == 256 && c.window == at[i].window, "%d: %d", at[i].given, c.window);
    }
}

/* ---- parts ---------------------------------------------------------------- */

/* A file without tensors that says it is part `no` of two, from 0. */
static struct buf second_part(int no)
{
    struct more x = { 0 };
    struct buf b = { 0 };

    add_key(&x, "split.no", U32, no);
    add_key(&x, "split.count", U32, 2);
    buf_add(&b, "GGUF", 4);
    put(&b, 3, 4);
    put(&b, 0, 8);
    put(&b, x.n_keys, 8);
    buf_add(&b, x.keys.at, x.keys.n);
    buf_release(&x.keys);
    return b;
}

static void write_part(const char *dir, int i, struct buf b)
{
    char path[96];
    struct err err;

    snprintf(path, sizeof(path), "%s/m-%05d-of-00002.gguf", dir, i);
    cr_assert_eq(file_write(path, b.at, b.n, &err), 0, "%s", err.msg);
    buf_release(&b);
}

/* Opens part i of a model whose second part says that it is part `no`; "" or what is wrong. */
static const char *open_parts(int i, int no, int n_tensors, struct err *err)
{
    char dir[] = "/tmp/parts.XXXXXX", path[96];
    struct more x = { 0 };

    cr_assert(mkdtemp(dir));
    add_key(&x, "split.no", U32, 0);
    add_key(&x, "split.count", U32, 2);
    add_key(&x, "split.tensors.count", U32, n_tensors);
    write_part(dir, 1, make(&x));
    if (no >= 0)
        write_part(dir, 2, second_part(no));
    snprintf(path, sizeof(path), "%s/m-%05d-of-00002.gguf", dir, i);
    struct model *m = model_open(path, err);
    const char *said = m ? "" : err->msg;
    model_close(m);
    for (int part = 1; part <= 2; part++) {
        snprintf(path, sizeof(path), "%s/m-%05d-of-00002.gguf", dir, part);
        unlink(path);
    }
    rmdir(dir);
    return said;
}

Test(model_keys, parts_are_opened_by_the_first)
{
    enum { TENSORS = 11 };
    struct err err;

    cr_assert_str_eq(open_parts(1, 1, TENSORS, &err), "");
    cr_assert(strstr(open_parts(2, 1, TENSORS, &err), "it is file 2 of 2 ('split.no'); name the first file"), "%s",
              err.msg);
    cr_assert(strstr(open_parts(1, 0, TENSORS, &err), "its keys say file 1 of 2, not 2 of 2"), "%s", err.msg);
    cr_assert(strstr(open_parts(1, -1, TENSORS, &err), "cannot open '"), "%s", err.msg);
    cr_assert(strstr(open_parts(1, 1, TENSORS + 1, &err), "its 2 files have 11 tensors, not 12"), "%s", err.msg);
}

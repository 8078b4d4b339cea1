/* What a model file and its tokenizer may say: each limit exactly, and one beyond it. The GGUF files are built here,
 * piece by piece; the folders are the tiny model of tests/data with another config.json. */
#include "base/file.h"
#include "engine/model/gguf.h"
#include "engine/model/model_internal.h"
#include "engine/tokens/tokenizer_internal.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- GGUF ---------------------------------------------------------------- */

static void put(struct buf *b, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        buf_addc(b, (char)(v >> (8 * i) & 0xff));
}

static void put_text(struct buf *b, const char *text)
{
    put(b, strlen(text), 8);
    buf_adds(b, text);
}

static void put_header(struct buf *b, uint64_t n_tensors, uint64_t n_keys)
{
    buf_adds(b, "GGUF");
    put(b, 3, 4);
    put(b, n_tensors, 8);
    put(b, n_keys, 8);
}

/* Parses and releases what was built; *err is what it said. */
static int parse(struct buf *b, struct err *err)
{
    char *exact = malloc(b->n); /* so that the sanitizer sees one byte too far */
    struct gguf g;

    memcpy(exact, b->at, b->n);
    int code = gguf_parse(&g, exact, b->n, err);
    if (!code)
        gguf_release(&g);
    free(exact);
    buf_release(b);
    return code;
}

/* A file of one F32 tensor of n_dims dimensions, first `dim`, then 1, with `bytes` of data. */
static int parse_tensor(uint64_t n_dims, uint64_t dim, size_t bytes, struct err *err)
{
    struct buf b = { 0 };

    put_header(&b, 1, 0);
    put_text(&b, "t");
    put(&b, n_dims, 4);
    for (uint64_t i = 0; i < n_dims; i++)
        put(&b, i == 0 ? dim : 1, 8);
    put(&b, 0, 4);
    put(&b, 0, 8);
    while (b.n % 32)
        put(&b, 0, 1);
    for (size_t i = 0; i < bytes; i++)
        put(&b, 0, 1);
    return parse(&b, err);
}

Test(gguf_limits, a_tensor_has_one_to_four_dimensions_and_its_bytes)
{
    struct err err;

    for (uint64_t n = 1; n <= 4; n++)
        cr_assert_eq(parse_tensor(n, 2, 8, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_tensor(0, 2, 8, &err), ERR_FORMAT);
    cr_assert_eq(parse_tensor(5, 2, 8, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "it has 5 dimensions, not 1 to 4"), "%s", err.msg);
    cr_assert_eq(parse_tensor(1, 2, 7, &err), ERR_FORMAT); /* one byte short */
    cr_assert_eq(parse_tensor(1, 2, 9, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_tensor(1, 1, 4, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_tensor(1, 0, 4, &err), ERR_FORMAT);
    cr_assert_eq(parse_tensor(1, INT32_MAX, 4, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "is outside the 4 bytes of data"), "%s", err.msg);
    cr_assert_eq(parse_tensor(1, (uint64_t)INT32_MAX + 1, 4, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "it has a dimension of 2147483648"), "%s", err.msg);
}

/* Two tensors of 32 bytes, the second at `offset`. */
static int parse_two(uint64_t offset, struct err *err)
{
    struct buf b = { 0 };

    put_header(&b, 2, 0);
    for (int i = 0; i < 2; i++) {
        put_text(&b, i ? "b" : "a");
        put(&b, 1, 4);
        put(&b, i ? 8 : 9, 8); /* the first ends in the middle of a step of 32 bytes */
        put(&b, 0, 4);
        put(&b, i ? offset : 0, 8);
    }
    while (b.n % 32)
        put(&b, 0, 1);
    for (int i = 0; i < 96; i++)
        put(&b, 0, 1);
    return parse(&b, err);
}

Test(gguf_limits, tensors_may_touch_and_not_overlap)
{
    struct err err;

    cr_assert_eq(parse_two(64, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_two(32, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "tensors 'a' and 'b' overlap"), "%s", err.msg);
    cr_assert_eq(parse_two(96, &err), ERR_FORMAT);
}

/* A file without tensors that says this alignment. */
static int parse_alignment(uint64_t alignment, struct err *err)
{
    struct buf b = { 0 };

    put_header(&b, 0, 1);
    put_text(&b, "general.alignment");
    put(&b, 10, 4);
    put(&b, alignment, 8);
    return parse(&b, err);
}

Test(gguf_limits, an_alignment_is_a_power_of_two_up_to_a_mebibyte)
{
    struct err err;

    cr_assert_eq(parse_alignment(1, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_alignment(1 << 20, &err), 0, "%s", err.msg);
    static const uint64_t bad[] = { 0, 3, (1 << 20) - 1, (1 << 20) + 1, 1 << 21, 1ull << 63 };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        cr_assert_eq(parse_alignment(bad[i], &err), ERR_FORMAT, "%llu", (unsigned long long)bad[i]);
}

/* A file of one array of n numbers of two bytes, with `bytes` after the count. */
static int parse_array(uint64_t n, size_t bytes, struct err *err)
{
    struct buf b = { 0 };

    put_header(&b, 0, 1);
    put_text(&b, "k");
    put(&b, 9, 4);
    put(&b, 2, 4);
    put(&b, n, 8);
    for (size_t i = 0; i < bytes; i++)
        put(&b, 0, 1);
    return parse(&b, err);
}

Test(gguf_limits, an_array_fits_the_file)
{
    struct err err;

    cr_assert_eq(parse_array(0, 0, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_array(5, 10, &err), 0, "%s", err.msg);
    cr_assert_eq(parse_array(5, 9, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "an array of 5 elements does not fit in the 9 bytes left"), "%s", err.msg);
    cr_assert_eq(parse_array(6, 11, &err), ERR_FORMAT);
}

/* A header alone, of 24 bytes, and zeros. */
static int parse_counts(uint64_t n_tensors, uint64_t n_keys, size_t n, struct err *err)
{
    struct buf b = { 0 };

    put_header(&b, n_tensors, n_keys);
    while (b.n < n)
        put(&b, 0, 1);
    return parse(&b, err);
}

Test(gguf_limits, the_file_bounds_its_counts)
{
    static const char too_many[] = "do not fit in";
    struct err err;

    cr_assert_eq(parse_counts(0, 0, 24, &err), 0, "%s", err.msg);
    cr_assert(parse_counts(4, 0, 128, &err) && !strstr(err.msg, too_many), "%s", err.msg); /* 32 bytes each */
    cr_assert(parse_counts(5, 0, 128, &err) && strstr(err.msg, too_many), "%s", err.msg);
    cr_assert(parse_counts(0, 10, 130, &err) && !strstr(err.msg, too_many), "%s", err.msg); /* 13 bytes each */
    cr_assert(parse_counts(0, 11, 130, &err) && strstr(err.msg, too_many), "%s", err.msg);
}

/* Two tensors, the second with a name of n bytes. */
Test(gguf_limits, a_tensors_name_has_up_to_128_bytes)
{
    for (size_t n = 127; n <= 129; n++) {
        struct buf b = { 0 };
        struct err err;
        char name[200] = "";
        struct model *m = calloc(1, sizeof(*m));
        memset(name, 'x', n);
        put_header(&b, 2, 9);
        static const char *const key[] = { "block_count",          "embedding_length",        "feed_forward_length",
                                           "attention.head_count", "attention.head_count_kv", "context_length" };
        static const int value[] = { 1, 2, 2, 1, 1, 4 };
        for (size_t i = 0; i < 6; i++) {
            char full[64];
            snprintf(full, sizeof(full), "llama.%s", key[i]);
            put_text(&b, full);
            put(&b, 4, 4);
            put(&b, (uint64_t)value[i], 4);
        }
        put_text(&b, "llama.attention.layer_norm_rms_epsilon");
        put(&b, 6, 4);
        put(&b, 0x3727c5ac, 4); /* 1e-5 */
        put_text(&b, "general.architecture");
        put(&b, 8, 4);
        put_text(&b, "llama");
        put_text(&b, "general.name");
        put(&b, 8, 4);
        put_text(&b, "n");
        for (int i = 0; i < 2; i++) {
            put_text(&b, i ? name : "token_embd.weight");
            put(&b, 2, 4);
            put(&b, 2, 8);
            put(&b, 4, 8);
            put(&b, 0, 4);
            put(&b, i ? 32 : 0, 8);
        }
        for (int i = 0; i < 96; i++)
            put(&b, 0, 1);
        m->path = strdup("file");
        int code = gguf_model_parse(m, b.at, b.n, &err);
        cr_assert_eq(code, n > 128 ? ERR_FORMAT : 0, "%zu: %s", n, code ? err.msg : "");
        if (code)
            cr_assert(strstr(err.msg, "the name of tensor 1 has 129 bytes, more than 128"), "%s", err.msg);
        model_close(m);
        buf_release(&b);
    }
}

/* ---- config.json ---------------------------------------------------------- */

/* What a folder with this config.json is refused for, or "". The config is tried before any tensor is looked for, so a
 * config within its limits is refused for a tensor. */
__attribute__((format(printf, 2, 3))) static const char *refusal(struct err *err, const char *fmt, ...)
{
    char path[64], config[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(config, sizeof(config), fmt, args);
    va_end(args);
    tiny_model_make(path);
    char *at = file_join(path, "config.json");
    cr_assert_eq(file_write(at, config, strlen(config), err), 0);
    free(at);
    struct model *m = model_open(path, err);
    tiny_model_remove(path);
    if (m)
        err_set(err, ERR_FAIL, "%s", "");
    model_close(m);
    return err->msg;
}

/* The tiny model's config with one number changed. */
static const char *with(struct err *err, const char *field, const char *value)
{
    static const char *const fields[][2] = {
        { "hidden_size", "64" },        { "num_hidden_layers", "2" },
        { "num_attention_heads", "4" }, { "num_key_value_heads", "2" },
        { "head_dim", "32" },           { "intermediate_size", "96" },
        { "vocab_size", "271" },        { "max_position_embeddings", "2048" },
        { "rms_norm_eps", "1e-05" },    { "rope_theta", "10000.0" },
    };
    struct buf text = { 0 };

    buf_adds(&text, "{\"model_type\":\"llama\",\"tie_word_embeddings\":false");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        buf_printf(&text, ",\"%s\":%s", fields[i][0], strcmp(fields[i][0], field) == 0 ? value : fields[i][1]);
    buf_adds(&text, "}");
    const char *said = refusal(err, "%s", buf_str(&text));
    buf_release(&text);
    return said;
}

Test(model_limits, a_config_says_what_is_possible)
{
    static const struct {
        const char *field, *good, *bad, *below;
        const char *says;
    } at[] = {
        { "num_hidden_layers", "1024", "1025", "0", "the number of layers is" },
        { "hidden_size", "1048576", "1048577", "0", "the model's width is" },
        { "num_attention_heads", "32768", "1048577", "0", "the number of heads is" }, /* x 32 is the most */
        { "num_key_value_heads", "4", "5", "0", "the number of key-value heads is" },
        { "head_dim", "1024", "1025", "0", "the width of a head is" },
        { "intermediate_size", "1048576", "1048577", "0", "the feed-forward width is" },
        { "vocab_size", "16777216", "16777217", "0", "the vocabulary's size is" },
        { "max_position_embeddings", "16777216", "16777217", "0", "the context length is" },
        { "rms_norm_eps", "0.9999", "1", "0", "norm epsilon " },
        { "rope_theta", "9.9e11", "1e12", "1", "rotary base " },
        { "num_attention_heads", "32768", "32770", "3", "do not fit together" }, /* 3 heads over 2 */
    };
    struct err err;

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const char *said = with(&err, at[i].field, at[i].good);
        cr_assert(!*said || strstr(said, "tensor"), "%s = %s: %s", at[i].field, at[i].good, said);
        said = with(&err, at[i].field, at[i].bad);
        cr_assert(strstr(said, at[i].says), "%s = %s: %s", at[i].field, at[i].bad, said);
        said = with(&err, at[i].field, at[i].below);
        cr_assert(strstr(said, at[i].says), "%s = %s: %s", at[i].field, at[i].below, said);
    }
    cr_assert_str_eq(with(&err, "rope_theta", "1.0001"), "");
    cr_assert(strstr(with(&err, "head_dim", "31"), "do not fit together"), "%s", err.msg); /* odd: no halves */
}

static const char *with_scaling(struct err *err, const char *scaling)
{
    return refusal(err,
                   "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                   "\"num_key_value_heads\":2,\"head_dim\":32,\"intermediate_size\":96,\"vocab_size\":271,"
                   "\"max_position_embeddings\":2048,\"rms_norm_eps\":1e-5,\"rope_scaling\":{%s}}",
                   scaling);
}

#define LLAMA3 "\"type\":\"llama3\",\"factor\":8,\"original_max_position_embeddings\":"

Test(model_limits, a_rotary_scaling_says_what_is_possible)
{
    static const struct {
        const char *scaling, *says;
    } at[] = {
        { "\"type\":\"linear\",\"factor\":1", "" },
        { "\"type\":\"linear\",\"factor\":0.999", "scaling factor 0.999 is" },
        { "\"type\":\"linear\",\"factor\":999999", "" },
        { "\"type\":\"linear\",\"factor\":1000000", "scaling factor 1e+06 is" },
        { LLAMA3 "1,\"low_freq_factor\":1,\"high_freq_factor\":1.001", "" },
        { LLAMA3 "1,\"low_freq_factor\":1,\"high_freq_factor\":1", "llama3 rotary scaling" },
        { LLAMA3 "1,\"low_freq_factor\":0,\"high_freq_factor\":1", "llama3 rotary scaling" },
        { LLAMA3 "0,\"low_freq_factor\":1,\"high_freq_factor\":4", "llama3 rotary scaling" },
    };
    struct err err;

    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        const char *said = with_scaling(&err, at[i].scaling);
        cr_assert(*at[i].says ? strstr(said, at[i].says) != NULL : !*said, "%s: %s", at[i].scaling, said);
    }
}

/* ---- tokenizers ----------------------------------------------------------- */

/* tokenizer.json with one token and one added token, for a vocabulary of 64. */
static int from_ids(int token, int added, struct err *err)
{
    struct buf text = { 0 };
    struct tokenizer t = { 0 };

    buf_printf(&text,
               "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":%d},"
               "\"merges\":[]},\"added_tokens\":[{\"id\":%d,\"content\":\"x\"}]}",
               token, added);
    struct json *root = json_parse(buf_str(&text), text.n, err);
    int code = tokenizer_from_json(&t, root, 64, err);
    json_free(root);
    tokenizer_release(&t);
    buf_release(&text);
    return code;
}

Test(tokenizer_limits, ids_are_below_the_vocabulary)
{
    struct err err;

    cr_assert_eq(from_ids(0, 63, &err), 0, "%s", err.msg);
    cr_assert_eq(from_ids(63, 0, &err), 0, "%s", err.msg);
    cr_assert_eq(from_ids(64, 0, &err), ERR_FORMAT);
    cr_assert_eq(from_ids(0, 64, &err), ERR_FORMAT);
    cr_assert_eq(from_ids(-1, 0, &err), ERR_FORMAT);
    cr_assert_eq(from_ids(0, -1, &err), ERR_FORMAT);
}

Test(tokenizer_limits, a_gguf_vocabulary_fits_the_model)
{
    struct buf b = { 0 };
    struct gguf g;
    struct err err;

    cr_assert_eq(file_read(&b, "tests/data/tiny.gguf", 1 << 20, &err), 0, "%s", err.msg);
    cr_assert_eq(gguf_parse(&g, b.at, b.n, &err), 0, "%s", err.msg);
    for (int n_vocab = 270; n_vocab <= 272; n_vocab++) {
        struct tokenizer t = { 0 };
        cr_assert_eq(tokenizer_from_gguf(&t, &g, n_vocab, &err), n_vocab < 271 ? ERR_FORMAT : 0, "%d", n_vocab);
        cr_assert(!tokenizer_stops(&t, n_vocab) && !tokenizer_stops(&t, n_vocab + 1));
        tokenizer_release(&t);
    }
    gguf_release(&g);
    buf_release(&b);
}

Test(tokenizer_limits, a_splitter_has_up_to_eight_steps)
{
    struct splitter s = { 0 };
    struct err err;

    for (int i = 0; i < SPLIT_STEPS; i++)
        cr_assert_eq(splitter_add(&s, "a", &err), 0, "%s", err.msg);
    cr_assert_eq(splitter_add(&s, "a", &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "more than 8 split patterns"), "%s", err.msg);
    splitter_release(&s);
}

/* Opens the tiny model's tokenizer beside a chat_template.jinja of n bytes. */
static int open_with_template(size_t n, struct err *err)
{
    static const char word[] = "<|im_start|>";
    char path[64];

    tiny_model_make(path);
    char *at = file_join(path, "chat_template.jinja"), *text = malloc(n);
    memset(text, ' ', n);
    memcpy(text, word, sizeof(word) - 1);
    cr_assert_eq(file_write(at, text, n, err), 0);
    struct model *m = model_open(path, err);
    cr_assert(m, "%s", err->msg);
    struct tokenizer *t = tokenizer_open(m, err);
    int code = t ? 0 : err->code;
    tokenizer_free(t);
    model_close(m);
    unlink(at);
    tiny_model_remove(path);
    free(at);
    free(text);
    return code;
}

Test(tokenizer_limits, a_chat_template_has_up_to_a_mebibyte)
{
    struct err err;

    cr_assert_eq(open_with_template(1 << 20, &err), 0, "%s", err.msg);
    cr_assert_neq(open_with_template((1 << 20) + 1, &err), 0);
    cr_assert(strstr(err.msg, "chat_template.jinja"), "%s", err.msg);
}

/* An added token is its bytes, all of them: cut at its NUL it would be found everywhere, and be empty. */
Test(tokenizer_limits, an_added_token_may_contain_a_nul)
{
    struct tokenizer t = { 0 };
    struct tokens ids = { 0 };
    struct err err;
    const struct text_view token = { "\0a", 2 }, text = { "\0a\0", 3 };

    cr_assert_eq(tokenizer_alloc(&t, BPE_ALPHABET, 4, &err), 0);
    cr_assert_eq(bpe_set_token(&t.bpe, 3, token, &err), 0);
    cr_assert_eq(tokenizer_add_token(&t, token, 3, ADDED_PLAIN, &err), 0);
    cr_assert_eq(tokenizer_add_token(&t, (struct text_view){ "", 0 }, 3, ADDED_PLAIN, &err), ERR_FORMAT);
    cr_assert_eq(tokenizer_add_token(&t, (struct text_view){ "\xa9", 1 }, 3, ADDED_PLAIN, &err), ERR_FORMAT);
    cr_assert_str_eq(err.msg, "added token 3 is not UTF-8"); // it would match the end of U+00E9
    cr_assert_eq(bpe_finish(&t.bpe, &err), 0);
    cr_assert_eq(tokenizer_encode(&t, text, SPECIAL_AS_TEXT, &ids, &err), 0, "%s", err.msg);
    cr_assert(ids.n == 1 && ids.at[0] == 3);
    tokens_release(&ids);
    tokenizer_release(&t);
}

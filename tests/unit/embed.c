/* The embedder on a small random BERT (tests/data/minibert), against what transformers makes of the same files; and on
 * the real one, where it is installed, against sentence-transformers. */
#include "base/file.h"
#include "base/json.h"
#include "base/rows.h"
#include "embed/embed.h"
#include "kernels/backend.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/fenced.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MINIBERT "tests/data/minibert"
enum { MINI = 32 };

static struct backend *open_backend(const char *name)
{
    struct err err;
    struct backend *be = backend_open(&(struct backend_options){ .name = name, .n_threads = 2 }, &err);

    cr_assert(be, "%s", err.msg);
    return be;
}

static struct embedder *open_embedder(const char *dir, struct backend *be)
{
    struct err err;
    struct embedder *e = embedder_open(dir, be, &err);

    cr_assert(e, "%s", err.msg);
    return e;
}

static void embed(struct embedder *e, const char *const *text, int n, float *vector)
{
    struct err err;

    cr_assert_eq(embedder_run(e, &(struct embed_texts){ text, n }, vector, NULL, &err), 0, "%s", err.msg);
}

/* Texts: empty, cut at 40 tokens, with a letter that the vocabulary lacks: see tests/golden/embed/make-minibert.py. */
static void check_minibert(struct backend *be)
{
    struct embedder *e = open_embedder(MINIBERT, be);
    struct rows_in in;
    struct json *row;
    struct err err;
    int n = 0, got;

    cr_assert_eq(embedder_width(e), MINI);
    cr_assert_eq(rows_open(&in, MINIBERT "/expected.jsonl", "vectors", &err), 0, "%s", err.msg);
    for (; (got = rows_next(&in, &row, &err)) == 1; n++) {
        const char *text = json_text(json_get(row, "text"));
        float vector[MINI];
        embed(e, &text, 1, vector);
        for (int c = 0; c < MINI; c++) {
            double want = json_real(json_at(json_get(row, "vector"), c));
            cr_assert(fabs((double)vector[c] - want) < 2e-6, "'%s' [%d]: %g, not %g", text, c, (double)vector[c], want);
        }
        json_free(row);
    }
    cr_assert_eq(got, 0, "%s", err.msg);
    cr_assert_eq(n, 8);
    rows_close(&in);
    embedder_close(e);
    be->close(be);
}

Test(embed, small_model_as_transformers_by_the_reference)
{
    check_minibert(fenced_open("f32")); // no device memory is touched but by ops
}

Test(embed, small_model_as_transformers_by_the_cpu)
{
    check_minibert(open_backend("cpu"));
}

Test(embed, small_model_as_transformers_by_cuda)
{
    struct err why;
    struct backend *be = listed_open(&(struct backend_options){ .name = "cuda", .dtype = "f32" }, &why);

    if (!be)
        cr_skip("%s", why.msg);
    check_minibert(be);
}

static void count_up(void *arg, int done)
{
    int *last = arg;

    cr_assert_gt(done, *last);
    *last = done;
}

/* Many texts of all lengths and some of them equal: each as if it were alone. */
Test(embed, a_batch_gives_what_each_text_gives_alone)
{
    enum { N = 300 };
    static const char letters[] = "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m";
    struct backend *be = open_backend("cpu");
    struct embedder *e = open_embedder(MINIBERT, be);
    static float together[N][MINI];
    float alone[MINI];
    static char text[N][sizeof(letters)];
    const char *at[N];
    struct err err;
    int done = 0;

    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof(text[i]), "%.*s", i * 7 % 75, letters);
        at[i] = text[i];
    }
    struct embed_progress progress = { count_up, &done };
    cr_assert_eq(embedder_run(e, &(struct embed_texts){ at, N }, together[0], &progress, &err), 0, "%s", err.msg);
    cr_assert_eq(done, N);
    for (int i = 0; i < N; i++) {
        embed(e, &at[i], 1, alone);
        cr_assert_gt(embed_cosine(alone, together[i], MINI), 1 - 1e-6f, "text %d", i);
    }
    cr_assert_arr_eq(together[0], together[75], sizeof(together[0])); // equal texts, equal bits
    cr_assert_eq(embedder_run(e, &(struct embed_texts){ 0 }, NULL, NULL, &err), 0);
    embedder_close(e);
    be->close(be);
}

/* `max` words fill the model beside [CLS] and [SEP]: one more changes nothing, one less does. */
static void check_cut(struct embedder *e, int max)
{
    static const int n[] = { -1, 0, 1, 100 };
    int width = embedder_width(e);
    float *vector = malloc(4 * (size_t)width * sizeof(*vector));
    struct buf text[4] = { 0 };
    const char *at[4];

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < max + n[i]; k++)
            buf_adds(&text[i], k % 2 ? "paris " : "the ");
        at[i] = buf_str(&text[i]);
    }
    embed(e, at, 4, vector);
    cr_assert_neq(memcmp(vector, vector + width, (size_t)width * sizeof(*vector)), 0, "%d words", max);
    for (int i = 2; i < 4; i++)
        for (int c = 0; c < width; c++)
            cr_assert_float_eq(vector[width + c], vector[i * width + c], 1e-6, "%d words", max + n[i]);
    for (int i = 0; i < 4; i++)
        buf_release(&text[i]);
    free(vector);
}

Test(embed, long_texts_are_cut_at_the_models_positions)
{
    struct backend *be = open_backend("reference");
    struct embedder *e = open_embedder(MINIBERT, be);

    check_cut(e, 40 - 2);
    embedder_close(e);
    be->close(be);
}

/* ---- wrong files --------------------------------------------------------- */

static const char *const file[] = { "config.json", "model.safetensors", "vocab.txt" };

static void copy(const char *to, const char *name, size_t max, const char *from, const char *into)
{
    struct buf text = { 0 };
    struct err err;
    char *src = file_join(MINIBERT, name), *dst = file_join(to, name);

    cr_assert_eq(file_read(&text, src, 1 << 20, &err), 0, "%s", err.msg);
    if (max < text.n)
        text.n = max;
    for (char *s = text.at; from && (size_t)(s - text.at) + strlen(from) <= text.n; s++)
        if (memcmp(s, from, strlen(from)) == 0)
            memcpy(s, into, strlen(into)); // of equal length
    cr_assert_eq(file_write(dst, text.at, text.n, &err), 0, "%s", err.msg);
    buf_release(&text);
    free(src);
    free(dst);
}

/* Removes a folder of copies. */
static void remove_copies(const char *dir)
{
    for (int f = 0; f < 3; f++) {
        char *path = file_join(dir, file[f]);
        cr_assert_eq(unlink(path), 0);
        free(path);
    }
    cr_assert_eq(rmdir(dir), 0);
}

Test(embed, wrong_files_are_named)
{
    static const struct {
        const char *file, *from, *into; // `from` becomes `into`
        size_t max;                     // or the file ends here
        const char *says;
    } wrong[] = {
        { "config.json", "\"bert\"", "\"gpt2\"", SIZE_MAX, "/config.json': field 'model_type' is 'gpt2', not 'bert'" },
        { "config.json", "\"hidden_size\": 32", "\"hidden_size\": 48", SIZE_MAX,
          "tensor 'embeddings.word_embeddings.weight' does not have the shape that config.json gives it, 81 x 48" },
        { "config.json", "\"hidden_size\": 32", "\"hidden_size\": 30", SIZE_MAX,
          "field 'hidden_size' is 30, not an even multiple of 4 heads" },
        { "config.json", "\"vocab_size\": 81", "\"vocab_size\": -1", SIZE_MAX, "field 'vocab_size' is -1, not 1 to " },
        { "config.json", "\"intermediate_size\"", "\"intermediate_sice\"", SIZE_MAX,
          "field 'intermediate_size' is missing" },
        { "config.json", "1e-12", "12.00", SIZE_MAX, "field 'layer_norm_eps' is not between 0 and 1" },
        { "config.json", NULL, NULL, 100, "config.json': malformed JSON" },
        { "model.safetensors", "encoder.layer.1.output.dense.bias", "encoder.layer.1.output.dense.bios", SIZE_MAX,
          "tensor 'encoder.layer.1.output.dense.bias' is missing" },
        { "model.safetensors", NULL, NULL, 40000, "model.safetensors" },
        { "vocab.txt", "[CLS]", "[cls]", SIZE_MAX, "vocab.txt" },
    };
    struct backend *be = open_backend("reference");
    char dir[] = "/tmp/evp-embed-test.XXXXXX";
    struct err err;

    cr_assert(mkdtemp(dir));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        for (int f = 0; f < 3; f++) {
            bool it = strcmp(file[f], wrong[i].file) == 0;
            copy(dir, file[f], it ? wrong[i].max : SIZE_MAX, it ? wrong[i].from : NULL, wrong[i].into);
        }
        cr_assert_null(embedder_open(dir, be, &err), "%s", wrong[i].says);
        cr_assert_eq(err.code, ERR_FORMAT, "%s", err.msg);
        cr_assert(strstr(err.msg, wrong[i].says), "'%s' does not say '%s'", err.msg, wrong[i].says);
    }
    remove_copies(dir);
    be->close(be);
}

/* Every field of config.json at 0, 1, its largest value and one above. 1 and the largest value are taken: the model
 * then fails for another reason, that its weights have other shapes. */
Test(embed, fields_of_the_config_have_limits)
{
    static const struct {
        const char *field;
        int max;
    } limit[] = { { "hidden_size", 4096 },       { "num_attention_heads", 256 }, { "intermediate_size", 16384 },
                  { "num_hidden_layers", 256 },  { "vocab_size", 1 << 20 },      { "max_position_embeddings", 1 << 16 },
                  { "type_vocab_size", 1 << 10 } };
    static const char rest[] = "\"model_type\":\"bert\",\"hidden_size\":4096,\"num_attention_heads\":2,"
                               "\"intermediate_size\":8,\"num_hidden_layers\":2,\"vocab_size\":81,"
                               "\"max_position_embeddings\":40,\"type_vocab_size\":2,\"layer_norm_eps\":1e-12}";
    struct backend *be = open_backend("reference");
    char dir[] = "/tmp/evp-embed-test.XXXXXX";

    cr_assert(mkdtemp(dir));
    copy(dir, "model.safetensors", SIZE_MAX, NULL, NULL);
    copy(dir, "vocab.txt", SIZE_MAX, NULL, NULL);
    char *path = file_join(dir, "config.json");
    for (size_t i = 0; i < sizeof(limit) / sizeof(*limit); i++) {
        const int value[] = { 0, 1, limit[i].max, limit[i].max + 1 };
        for (int k = 0; k < 4; k++) {
            struct buf text = { 0 }, says = { 0 };
            struct err err;
            buf_printf(&text, "{\"%s\":%d,%s", limit[i].field, value[k], rest); // of two fields the first counts
            buf_printf(&says, "field '%s' is %d, not 1 to %d", limit[i].field, value[k], limit[i].max);
            cr_assert_eq(file_write(path, text.at, text.n, &err), 0, "%s", err.msg);
            cr_assert_null(embedder_open(dir, be, &err));
            cr_assert_eq(strstr(err.msg, says.at) != NULL, k == 0 || k == 3, "%s", err.msg);
            buf_release(&text);
            buf_release(&says);
        }
    }
    free(path);
    remove_copies(dir);
    be->close(be);
}

/* ---- the real model ------------------------------------------------------ */

/* What of a pair is off: |cosine - expected|. */
static double off_by(struct embedder *e, const struct json *pair)
{
    const char *text[] = { json_text(json_get(pair, "a")), json_text(json_get(pair, "b")) };
    int width = embedder_width(e);
    float *vector = malloc(2 * (size_t)width * sizeof(*vector));

    cr_assert(text[0] && text[1] && vector);
    embed(e, text, 2, vector);
    double off = fabs((double)embed_cosine(vector, vector + width, width) - json_real(json_get(pair, "cosine")));
    free(vector);
    return off;
}

Test(minilm, cosines_of_sentence_transformers)
{
    char *models = file_models_dir(), *dir = file_join(models, "all-MiniLM-L6-v2");
    struct rows_in in;
    struct json *pair;
    struct err err;
    int n = 0;

    if (!file_is_dir(dir))
        cr_skip_test("no model in '%s'", dir);
    struct backend *be = open_backend("cpu");
    struct embedder *e = open_embedder(dir, be);
    cr_assert_eq(rows_open(&in, "tests/golden/embed/pairs.jsonl", "pairs", &err), 0, "%s", err.msg);
    for (; rows_next(&in, &pair, &err) == 1; n++) {
        double off = off_by(e, pair);
        cr_assert(off < 1e-4, "line %d is %g off", n + 1, off); // a not-a-number is off too
        json_free(pair);
    }
    cr_assert_eq(n, 22);
    rows_close(&in);
    check_cut(e, EMBED_MAX_TOKENS - 2);
    embedder_close(e);
    be->close(be);
    free(dir);
    free(models);
}

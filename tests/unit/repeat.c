/* session_repeat() against its definition: the context and a chunk's block run as one text, whose queries and keys a
 * plain softmax then compares. */
#include "engine/transformer/engine_internal.h"

#include "codes/half.h"
#include "tests/kernels/compare.h"
#include "tests/unit/tiny_model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { L = 2, H = 4, G = 2, K = 32, SINK = 4, CHUNK = 2048, BEFORE = 8 };

static void add(const struct engine *e, struct tokens *to, const char *text, enum special special)
{
    struct err err;
    cr_assert_eq(tokenizer_encode(engine_tokenizer(e), text_view_of(text), special, to, &err), 0, "%s", err.msg);
}

static void add_ids(struct tokens *to, const int32_t *ids, int n)
{
    struct err err;
    for (int i = 0; i < n; i++)
        cr_assert_eq(tokens_add(to, ids[i], &err), 0);
}

/* A context of n tokens that begins as the tiny model's chat template does. */
static struct tokens context_of(const struct engine *e, int n, int *n_head)
{
    struct tokens ids = { 0 };

    add(e, &ids,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\n",
        SPECIAL_PARSED);
    *n_head = ids.n;
    for (int i = ids.n; i < n; i++)
        add_ids(&ids, &(int32_t){ 3 + (i * 37 + i / 7) % (TINY_VOCAB - 3) }, 1);
    return ids;
}

/* The context, then the block of its tokens begin .. end - 1. */
static struct tokens text_of(const struct engine *e, const struct tokens *context, int begin, int end, int n_head)
{
    struct tokens ids = { 0 };

    add_ids(&ids, context->at, context->n);
    if (begin == n_head) {
        add(e, &ids, "\n\nRepeat the previous context exactly.", SPECIAL_AS_TEXT);
    } else {
        add(e, &ids, "\n\nRepeat the part of the previous context exactly, starting with", SPECIAL_AS_TEXT);
        add_ids(&ids, context->at + begin - BEFORE, BEFORE);
    }
    add(e, &ids, "<|im_end|>\n<|im_start|>assistant\n", SPECIAL_PARSED);
    add_ids(&ids, context->at + begin, end - begin);
    return ids;
}

static float *numbers_at(struct backend *be, const void *at, size_t n)
{
    float *x = calloc(n, sizeof(*x));
    uint16_t *half = calloc(n, sizeof(*half));
    struct err err;

    cr_assert_eq(be->read(be, be->dtype == DTYPE_BF16 ? (void *)half : x, at, n * dtype_size(be->dtype), &err), 0);
    for (size_t i = 0; i < n && be->dtype == DTYPE_BF16; i++)
        x[i] = bf16_to_f32(half[i]);
    free(half);
    return x;
}

/* The keys that the tokens of a block see, in the whole text. */
struct seen {
    int T, begin, end, n_block;
};

/* want[t] = the most attention to token t of the chunk from any of the block's queries: q (n_block, H/G, K), k (T +
 * n_block, K) of one head. */
static void most_attention(float *want, const struct seen *s, const float *q, const float *k)
{
    int n = s->T + s->n_block;
    double *weight = calloc((size_t)n, sizeof(*weight));

    for (int row = 0; row < s->n_block * (H / G); row++) {
        double sum = 0;
        for (int t = 0; t <= s->T + row / (H / G); t++) {
            double dot = 0;
            bool is_seen = t < SINK ? s->begin > 0 : t >= s->T || (t >= s->begin && t < s->end);
            for (int c = 0; is_seen && c < K; c++)
                dot += (double)q[row * K + c] * (double)k[t * K + c];
            sum += weight[t] = is_seen ? exp(dot / sqrt(K)) : 0;
        }
        for (int t = s->begin; t < s->end; t++)
            want[t] = fmaxf(want[t], (float)(weight[t] / sum));
    }
    free(weight);
}

/* Of a long context only the first and the last head are checked. */
static int step_of(int n_tokens)
{
    return n_tokens > CHUNK ? L * G - 1 : 1;
}

/* Runs the whole text as one context and fills what each head's tokens begin .. end - 1 should get. */
static void expect_of(struct session *s, const struct tokens *text, const struct seen *seen, float *want)
{
    struct prefill p = { .ids = text->at, .n = text->n, .needs = NEED_WINDOW_Q, .window = seen->n_block };
    struct err err;

    cr_assert_eq(session_prefill(s, &p, NULL, &err), 0, "%s", err.msg);
    const struct kv_full *full = session_full(s);
    for (int h = 0; h < L * G; h += step_of(seen->T)) {
        size_t per_head = (size_t)(seen->n_block * (H / G) * K);
        float *k = numbers_at(full->backend, full->rows[h].k, (size_t)(text->n * K));
        float *q = numbers_at(
            full->backend, (char *)full->window_q[h / G] + (size_t)(h % G) * per_head * dtype_size(full->shape.dtype),
            per_head);
        most_attention(want + h * seen->T, seen, q, k);
        free(k);
        free(q);
    }
}

static struct engine *open_engine(const char *path, const char *backend, const char *dtype)
{
    struct err err;
    struct backend *be =
        listed_open(&(struct backend_options){ .name = backend, .dtype = dtype, .n_threads = 2 }, &err);

    if (!be)
        return NULL;
    struct engine *e = engine_open_on(be, path, &err);
    cr_assert(e, "%s", err.msg);
    return e;
}

/* A session in which contexts of n tokens can be repeated, and texts of twice as many run. */
static struct session *start(struct engine *e, int n)
{
    static struct config config;
    static const struct config *const list[] = { &config };
    struct err err;

    cr_assert_eq(config_parse(&config, "kvzip:drop=0.5", &err), 0);
    const struct engine_work work[] = { { .n_tokens = n, .config = list, .n_configs = 1 },
                                        { .n_tokens = 2 * n + 200 } };
    struct session *s = engine_start(e, work, 2, 0, &err);
    cr_assert(s, "%s", err.msg);
    return s;
}

static void check(const char *backend, const char *dtype, int n, double within)
{
    char path[64];
    struct err err;
    int n_head;

    tiny_model_make_long(path, 3 * n);
    struct engine *e = open_engine(path, backend, dtype);
    if (e) {
        struct session *s = start(e, n);
        struct tokens ids = context_of(e, n, &n_head);
        float *want = calloc((size_t)(L * G * n), sizeof(*want)), *got;
        struct prefill p = { .ids = ids.at, .n = n, .needs = NEED_REPEAT };
        cr_assert_eq(session_prefill(s, &p, NULL, &err), 0, "%s", err.msg);
        cr_assert_null(session_full(s)->repeat_max);
        size_t used = session_full(s)->pool->used;
        cr_assert_eq(session_repeat(s, &p, &err), 0, "%s", err.msg);
        cr_assert(session_full(s)->n_head == n_head && session_full(s)->repeat_s > 0);
        cr_assert_eq(session_full(s)->pool->used - used, pool_size((size_t)(L * G * n) * sizeof(*got)));
        got = calloc((size_t)(L * G * n), sizeof(*got));
        cr_assert_eq(
            e->backend->read(e->backend, got, session_full(s)->repeat_max, (size_t)(L * G * n) * sizeof(*got), &err),
            0);
        for (int begin = n_head, end; begin < n; begin = end) {
            end = begin + CHUNK < n ? begin + CHUNK : n;
            struct tokens text = text_of(e, &ids, begin, end, n_head);
            expect_of(s, &text, &(struct seen){ n, begin, end, text.n - n }, want);
            tokens_release(&text);
        }
        for (int i = 0; i < L * G * n; i++) // tokens of the template are in no chunk
            cr_assert(i / n % step_of(n) > 0 || fabs((double)(got[i] - want[i])) <= within * (0.01 + (double)want[i]),
                      "%s %s: head %d, token %d: %g, not %g", backend, dtype, i / n, i % n, (double)got[i],
                      (double)want[i]);
        free(want);
        free(got);
        tokens_release(&ids);
        session_free(s);
        engine_close(e);
    }
    tiny_model_remove(path);
}

Test(repeat, keys_get_the_most_attention_of_their_chunk)
{
    check("reference", "f32", 300, 1e-4);
    check("cpu", "f32", 300, 1e-4);
    check("fenced", "f32", 300, 1e-4);
    check("cuda", "f32", 300, 1e-4);
    check("cpu", "bf16", 300, 0.1);
    check("cuda", "bf16", 300, 0.1);
}

/* A block longer than a pass; a second chunk that quotes the first. */
Test(repeat, goes_from_chunk_to_chunk)
{
    check("cpu", "f32", 2300, 1e-4);
}

Test(repeat, runs_only_where_it_is_needed_and_planned)
{
    char path[64];
    struct err err;
    int n_head;

    tiny_model_make(path);
    struct engine *e = open_engine(path, "reference", "f32");
    struct session *s = start(e, 100);
    struct tokens ids = context_of(e, 700, &n_head);
    struct prefill p = { .ids = ids.at, .n = 100 };
    cr_assert_eq(session_prefill(s, &p, NULL, &err), 0);
    cr_assert_eq(session_repeat(s, &p, &err), 0);
    cr_assert_null(session_full(s)->repeat_max);
    p = (struct prefill){ .ids = ids.at, .n = 350, .needs = NEED_REPEAT };
    cr_assert_eq(session_prefill(s, &p, NULL, &err), 0, "%s", err.msg);
    cr_assert_eq(session_repeat(s, &p, &err), ERR_NOMEM);
    cr_assert(strstr(err.msg, "repeating the context takes 956 positions, memory was planned for "), "%s", err.msg);
    cr_assert_null(session_full(s)->repeat_max);
    tokens_release(&ids);
    session_free(s);
    engine_close(e);
    tiny_model_remove(path);
}

/* quantise.c - one layer of given keys and values under a quantiser, as a payload and as the rows that come back.
 *
 *     quantise CONFIG BACKEND HEADS TOKENS HEAD_DIM DIR <NUMBERS
 *
 * NUMBERS: f32, keys (heads, tokens, head_dim), then values. Writes DIR/payload and DIR/rows, which is like NUMBERS.
 */
#include "kernels/pool.h"
#include "variants/packed_payload.h"
#include "variants/sizes.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADS_MAX = 64 };

struct job {
    struct config config;
    struct backend *be;
    struct pool pool;
    struct kv_shape shape;
    int n_tokens;
    float *numbers;
    char *at; // the same on the device
    const char *dir;
};

static size_t count(const struct job *j)
{
    return (size_t)2 * (size_t)j->shape.n_kv_heads * (size_t)j->n_tokens * (size_t)j->shape.head_dim;
}

static FILE *create(const struct job *j, const char *name, char path[4096])
{
    snprintf(path, 4096, "%s/%s", j->dir, name);
    return fopen(path, "w");
}

static int write_rows(const struct job *j, const struct variant *v, struct err *err)
{
    size_t n = (size_t)j->n_tokens * (size_t)j->shape.head_dim;
    char path[4096];
    FILE *f = create(j, "rows", path);
    int code = f ? 0 : err_set(err, ERR_IO, "cannot write '%s'", path);

    for (int i = 0; i < 2 * j->shape.n_kv_heads && !code; i++) {
        const struct kv_rows *rows = &v->rows[i % j->shape.n_kv_heads];
        code = j->be->read(j->be, j->numbers, i < j->shape.n_kv_heads ? rows->k : rows->v, n * sizeof(float), err);
        fwrite(j->numbers, sizeof(float), n, f);
    }
    if (f)
        fclose(f);
    return code;
}

static int write_both(struct job *j, struct compressor *c, struct err *err)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    int32_t *ids = calloc((size_t)j->n_tokens, sizeof(*ids));
    const struct payload_key key = { .model_digest = zeros, .token_digest = zeros, .ids = ids };
    struct variant v = { 0 };
    char path[4096];

    snprintf(path, sizeof(path), "%s/payload", j->dir);
    int code = compressor_variant(c, &j->config, VARIANT_PAYLOAD, &v, err);
    if (!code)
        code = packed_payload_write(path, &v, &key, NULL, err);
    if (!code)
        code = write_rows(j, &v, err);
    variant_release(&v);
    free(ids);
    return code;
}

static int quantise(struct job *j, struct err *err)
{
    size_t matrix = (size_t)j->n_tokens * (size_t)j->shape.head_dim * sizeof(float), all = count(j) * sizeof(float);
    const struct config *const list[] = { &j->config };
    struct memory_need need = config_variant_bytes(&j->config, &j->shape, j->n_tokens);
    struct kv_rows rows[HEADS_MAX];

    if (pool_open(&j->pool, j->be, all + need.kept + need.making + 4096, err))
        return err->code;
    j->at = pool_take(&j->pool, all, err);
    if (!j->at)
        return err->code;
    j->be->write(j->be, j->at, j->numbers, all);
    for (int g = 0; g < j->shape.n_kv_heads; g++)
        rows[g] = (struct kv_rows){ j->at + (size_t)g * matrix, j->at + (size_t)(j->shape.n_kv_heads + g) * matrix,
                                    j->n_tokens };
    const struct kv_full full = {
        .backend = j->be, .pool = &j->pool, .shape = j->shape, .n_tokens = j->n_tokens, .rows = rows
    };
    struct compressor *c = compressor_new(&full, list, 1, err);
    int code = c ? write_both(j, c, err) : err->code;
    compressor_free(c);
    return code;
}

static int run(char **arg, struct err *err)
{
    int heads = (int)strtol(arg[3], NULL, 10), tokens = (int)strtol(arg[4], NULL, 10),
        head_dim = (int)strtol(arg[5], NULL, 10);
    struct job j = { .shape = { 1, heads, heads, head_dim, DTYPE_F32 }, .n_tokens = tokens, .dir = arg[6] };

    if (heads < 1 || heads > HEADS_MAX || tokens < 1 || head_dim < 1)
        return err_set(err, ERR_USAGE, "see the top of quantise.c");
    j.numbers = malloc(count(&j) * sizeof(float));
    j.be = backend_open(&(struct backend_options){ .name = arg[2], .dtype = "f32" }, err);
    if (!j.numbers || !j.be)
        return err->code;
    int code = fread(j.numbers, sizeof(float), count(&j), stdin) == count(&j)
                   ? config_parse(&j.config, arg[1], err)
                   : err_set(err, ERR_FORMAT, "too few numbers");
    if (!code)
        code = quantise(&j, err);
    pool_close(&j.pool);
    j.be->close(j.be);
    free(j.numbers);
    return code;
}

int main(int argc, char **argv)
{
    struct err err = { .code = ERR_USAGE, .msg = "see the top of quantise.c" };

    if (argc != 7 || run(argv, &err)) {
        fprintf(stderr, "quantise: %s\n", err.msg);
        return err_exit_status(err.code);
    }
    return 0;
}

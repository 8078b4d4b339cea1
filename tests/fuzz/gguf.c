/* Any bytes as a GGUF file: the container, the model, and the tokenizer in it. Every tensor a model has is read. */
#include "engine/model/model_internal.h"
#include "engine/tokens/tokenizer_internal.h"
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What can be read is finite, and a view says the same. */
static void read_tensor(const struct model *m, enum tensor_role role, int index)
{
    struct tensor_shape shape = model_shape(&m->config, role);
    size_t n = (size_t)shape.rows * (size_t)shape.cols;
    float *out = malloc(n * sizeof(*out));
    struct mat view;
    struct err err;
    int code = out ? model_read(m, role, index, out, &err) : ERR_NOMEM;

    if (out && code && code != ERR_FORMAT)
        abort();
    if (!code && weight_finite(WEIGHT_F32, out, n) != n)
        abort();
    int view_code = model_view(m, role, index, &view, &err);
    if (out && view_code && !code)
        abort();
    if (!view_code && view.at && (view.rows != shape.rows || view.pitch != shape.cols))
        abort();
    free(out);
}

static void read_all(const struct model *m)
{
    for (int role = 0; role < TENSOR_ROLES; role++)
        for (int i = 0; i < model_count(&m->config, (enum tensor_role)role); i++)
            read_tensor(m, (enum tensor_role)role, i);
}

static void tokenize(const struct gguf *g)
{
    static const char text[] = "hello  world 12 <|im_end|>\n\xc3\xa9\0\0 \0";
    const struct text_view whole = { text, sizeof(text) - 1 };
    struct tokenizer t = { 0 };
    struct prompt_ids context = { 0 };
    struct tokens ids = { 0 };
    struct err err;

    if (tokenizer_from_gguf(&t, g, 4096, &err) == 0 && tokenizer_encode(&t, whole, SPECIAL_PARSED, &ids, &err) == 0)
        for (int i = 0; i < ids.n; i++)
            if (ids.at[i] < 0 || ids.at[i] >= 4096)
                abort();
    if (ids.n > 0 && tokenizer_context(&t, text, &context, &err) == 0 && context.ids.n > 0 &&
        (context.ids.at[0] < 0 || context.ids.at[0] >= 4096))
        abort();
    prompt_ids_release(&context);
    tokens_release(&ids);
    tokenizer_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct model *m = calloc(1, sizeof(*m));
    struct err err;

    m->path = strdup("file");
    if (gguf_model_parse(m, data, n, &err) == 0 && model_check(m, &err) == 0)
        read_all(m);
    if (m->gguf.n_values)
        tokenize(&m->gguf);
    model_close(m);
    return 0;
}

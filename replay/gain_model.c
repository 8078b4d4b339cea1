/* gain_model.c - opens config.json and, to count tokens, tokenizer.json. */
#include "replay/gain_model.h"

#include "engine/tokens/tokenizer.h"

#include <math.h>
#include <stdlib.h>

static const double token_bytes_guess = 4;

int gain_model_open(struct gain_model *m, const char *model, const char *gpu, struct err *err)
{
    if (!model)
        return err_set(err, ERR_USAGE,
                       "--model is needed: the model that the requests are for; its config.json is enough");
    if (!gpu)
        return err_set(err, ERR_USAGE, "--gpu is needed: one of %s", SERVING_GPUS);
    m->gpu = serving_find(gpu, &m->given, err);
    if (!m->gpu)
        return err_wrap(err, "--gpu");
    char *path = model_path(model, err);
    m->model = path ? model_open_header(path, err) : NULL;
    free(path);
    if (!m->model || shape_read(m->model, &m->shape, err))
        return err->code;
    const struct shape *s = &m->shape;
    m->kv_token = shape_per_token(s);
    m->token_s = serving_seconds(m->gpu, shape_token_flop(s), 0);
    m->pair_s = serving_seconds(m->gpu, s->pair_flop, 0);
    return 0;
}

void gain_model_close(struct gain_model *m)
{
    model_close(m->model);
    *m = (struct gain_model){ 0 };
}

static int count_sample(struct gain_model *m, const struct tokenizer *t, const struct gain_log *log, struct err *err)
{
    struct tokens ids = { 0 };
    double bytes = 0;
    int code = 0;

    for (int i = 0; i < GAIN_SAMPLE && !code; i++) {
        const struct text_view text = { buf_str(&log->sample[i]), log->sample[i].n };
        if (text.n == 0)
            continue;
        code = tokenizer_encode(t, text, SPECIAL_AS_TEXT, &ids, err);
        bytes += (double)text.n;
        m->n_sampled++;
    }
    if (!code && ids.n > 0)
        m->token_bytes = bytes / ids.n;
    tokens_release(&ids);
    return code;
}

int gain_model_measure(struct gain_model *m, const char *model, const struct gain_log *log, struct err *err)
{
    struct tokenizer *t = NULL;
    int code = 0;

    m->token_bytes = token_bytes_guess;
    if (!log->traces && !model_is_synthetic(model)) { // a synthetic model has a token for every byte
        m->unread.code = 0;
        t = tokenizer_open(m->model, &m->unread);
        if (t)
            code = count_sample(m, t, log, err);
    }
    tokenizer_free(t);
    m->unit_tokens = log->traces ? 1 : 1 / m->token_bytes;
    double mean = fmax(round((double)log->units * m->unit_tokens / fmax(log->requests.n, 1)), 1);
    m->kv_token = shape_bytes(&m->shape, mean) / mean;
    return code;
}

struct steps_gpu gain_model_steps(const struct gain_model *m)
{
    const double usable = 0.9; // vLLM's gpu_memory_utilization

    return (struct steps_gpu){
        .token_s = m->token_s,
        .weights_bytes = m->shape.weights_bytes,
        .kv_token_bytes = m->kv_token,
        .memory_bytes = usable * m->gpu->memory_bytes,
        .bytes_per_s = 1 / serving_seconds(m->gpu, 0, 1),
    };
}

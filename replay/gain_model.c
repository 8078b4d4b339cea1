/* gain_model.c - opens config.json and, to count tokens, tokenizer.json. */
#include "replay/gain_model.h"

#include "engine/tokens/tokenizer.h"
#include "variants/sizes.h"

#include <stdlib.h>

static const double token_bytes_guess = 4;

/* In 2 bytes per number. A token's 2 operations per number are as many, but for experts that it does not use. */
static double weights_bytes(const struct model_config *c)
{
    struct model_config all = *c;

    all.n_experts_used = all.n_experts;
    return model_token_flop(&all) + 2.0 * (c->tied ? 1 : 2) * c->n_vocab * c->d_model;
}

int gain_model_open(struct gain_model *m, const char *model, const char *gpu, struct err *err)
{
    if (!model)
        return err_set(err, ERR_USAGE,
                       "--model is needed: the model that the requests are for; its config.json is enough");
    if (!gpu)
        return err_set(err, ERR_USAGE, "--gpu is needed: one of %s", SERVING_GPUS);
    m->gpu = serving_find(gpu, err);
    if (!m->gpu)
        return err_wrap(err, "--gpu");
    char *path = model_path(model, err);
    m->model = path ? model_open_config(path, err) : NULL;
    free(path);
    if (!m->model)
        return err->code;
    const struct model_config *c = model_config(m->model);
    const struct kv_shape kv = { c->n_layers, c->n_heads, c->n_kv_heads, c->head_dim, DTYPE_F32 };
    m->kv_token = (double)kv_bytes(&kv, 1);
    m->weights_bytes = weights_bytes(c);
    m->token_s = serving_seconds(m->gpu, model_token_flop(c), 0);
    m->pair_s = serving_seconds(m->gpu, model_pair_flop(c), 0);
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
    return code;
}

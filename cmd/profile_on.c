/* profile_on.c - two forecasts: for the open work, and for N contexts of one length. */
#include "cmd/profile_on.h"

#include "base/log.h"
#include "base/parse.h"
#include "cmd/profile_say.h"
#include "cmd/summary.h"
#include "profiler/run/forecast.h"

#include <stdlib.h>
#include <string.h>

/* "1000x32768"; a number of tokens may end in k, 1,024. */
static bool parse_job(const char *text, struct forecast_size *job)
{
    char copy[TEXT_SHORT];
    uint64_t tokens;
    size_t n = strlen(text);

    if (n >= sizeof(copy))
        return false;
    memcpy(copy, text, n + 1);
    char *x = strchr(copy, 'x');
    if (!x)
        return false;
    *x = '\0';
    if (!parse_int(copy, &job->n) || !parse_size(x + 1, &tokens) || tokens < 1 || tokens > 1 << 30)
        return false;
    job->n_tokens = (int64_t)tokens;
    return job->n >= 1 && job->n <= 1000000000;
}

/* What follows the last comma is a job, unless it is one of the figures of a GPU. */
static int parse_on(const char *on, struct forecast *f, struct serving_gpu *given, struct forecast_size *job,
                    struct err *err)
{
    char name[2 * TEXT_SHORT] = "";
    const char *comma = strrchr(on, ',');
    size_t n = comma && !strchr(comma, '=') ? (size_t)(comma - on) : strlen(on);

    if (n < sizeof(name))
        memcpy(name, on, n);
    if (on[n] && !parse_job(on + n + 1, job))
        return err_set(err, ERR_USAGE, "'%.60s' after the GPU is not CONTEXTSxTOKENS, as in 1000x32k", on + n + 1);
    f->gpu = serving_find(name, given, err);
    return f->gpu ? 0 : err->code;
}

/* Any backend serves: nothing runs. */
static struct engine *open_engine(const char *model, struct err *err)
{
    char *path = model_path(model, err);
    struct engine_options options = {
        .model = path, .backend = "reference", .dtype = "f32", .n_threads = 1, .no_weights = true
    };
    struct engine *e = path ? engine_open(&options, err) : NULL;

    free(path);
    return e;
}

static int say(const struct forecast *f, struct forecast_size job, struct err *err)
{
    char text[TEXT_SHORT], hours[TEXT_SHORT];
    double seconds, sized;

    if (forecast_open(f, &seconds, err) || forecast_sized(f, job, &sized, err))
        return err->code;
    log_info("expected on one %s in bf16, from the %s and what an H200 reached:", f->gpu->name, f->gpu->source);
    log_info("this work: about %s (%s)", text_seconds(text, seconds), profile_hours(hours, seconds, true));
    log_info("%lld contexts of %lld tokens, with the same number of questions and configs: about %s (%s)",
             (long long)job.n, (long long)job.n_tokens, text_seconds(text, sized), profile_hours(hours, sized, true));
    json_put_real(summary_json(), "seconds_there", seconds);
    return 0;
}

static bool is_f32(const struct engine *e, const char *dtype)
{
    bool is_auto = strcmp(dtype, "auto") == 0;

    return is_auto ? model_is_f32(engine_model(e)) : strcmp(dtype, "f32") == 0;
}

int profile_on(const struct grid *g, const char *model, const char *dtype, const char *on, struct err *err)
{
    struct forecast f = { .grid = g };
    struct forecast_size job = { 1000, 32768 };

    struct serving_gpu given;

    if (parse_on(on, &f, &given, &job, err))
        return err_wrap(err, "--on");
    struct engine *e = open_engine(model, err);
    f.engine = e;
    int code = e ? say(&f, job, err) : err->code;
    if (!code && is_f32(e, dtype))
        log_warn("%s is f32, in which a GPU takes many times as long; --dtype bf16 takes what was estimated",
                 strcmp(dtype, "auto") == 0 ? "the type of the model's weights" : "--dtype");
    if (!code && model && model_is_synthetic(model))
        log_warn("'%s' has a token for every byte of text, other models one for about 4: a folder with your model's "
                 "config.json and tokenizer.json is enough here",
                 model);
    engine_close(e);
    return code;
}

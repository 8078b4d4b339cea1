/* qgen_say.c - see qgen_say.h. */
#include "cmd/qgen_say.h"

#include "base/log.h"
#include "cmd/summary.h"

static void put_totals(struct json_out *w, const struct api_totals *t)
{
    json_put_int(w, "requests", t->requests);
    json_put_int(w, "requests_again", t->again);
    json_put_int(w, "prompt_tokens", t->usage.prompt);
    json_put_int(w, "completion_tokens", t->usage.completion);
}

static void say_totals(const char *of, const char *colon, const struct api_totals *t)
{
    log_info("%s%s%lld requests (%lld sent again), %lld prompt tokens, %lld completion tokens", of, colon,
             (long long)t->requests, (long long)t->again, (long long)t->usage.prompt, (long long)t->usage.completion);
}

static void say_endpoints(const struct api *api, const struct api_totals *totals)
{
    struct json_out *w = summary_json();

    json_begin(w, "endpoints", '[');
    for (int i = 0; i < api->n_endpoints; i++) {
        say_totals(api->base[i], ": ", &totals[i]);
        json_begin(w, NULL, '{');
        json_put_text(w, "api_base", api->base[i]);
        put_totals(w, &totals[i]);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void qgen_say_usage(const struct api *api, const struct api_totals *totals)
{
    struct api_totals all = { 0 };

    for (int i = 0; i < api->n_endpoints; i++) {
        all.requests += totals[i].requests;
        all.again += totals[i].again;
        usage_add(&all.usage, &totals[i].usage);
    }
    if (api->n_endpoints > 1)
        say_endpoints(api, totals);
    put_totals(summary_json(), &all);
    say_totals("", "", &all);
}

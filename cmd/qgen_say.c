/* qgen_say.c - see qgen_say.h. */
#include "cmd/qgen_say.h"

#include "base/buf.h"
#include "base/log.h"
#include "cmd/summary.h"

static bool is_free(const struct prices *p)
{
    return p->in <= 0 && p->out <= 0;
}

static void put_totals(struct json_out *w, const struct api_totals *t, const struct prices *price)
{
    json_put_int(w, "requests", t->requests);
    json_put_int(w, "requests_again", t->again);
    json_put_int(w, "prompt_tokens", t->usage.prompt);
    json_put_int(w, "completion_tokens", t->usage.completion);
    if (!is_free(price))
        json_put_real(w, "cost", usage_cost(&t->usage, price));
}

/* of: NULL for all endpoints. */
static void say_totals(const char *of, const struct api_totals *t, const struct prices *price)
{
    struct buf line = { 0 };

    if (of)
        buf_printf(&line, "%s: ", of);
    buf_printf(&line, "%lld requests (%lld sent again), %lld prompt tokens, %lld completion tokens",
               (long long)t->requests, (long long)t->again, (long long)t->usage.prompt, (long long)t->usage.completion);
    if (!is_free(price))
        buf_printf(&line, ", cost %.4f", usage_cost(&t->usage, price));
    log_info("%s", buf_str(&line));
    buf_release(&line);
}

static void say_endpoints(const struct api *api, const struct api_totals *totals, const struct prices *price)
{
    struct json_out *w = summary_json();

    json_begin(w, "endpoints", '[');
    for (int i = 0; i < api->n_endpoints; i++) {
        say_totals(api->endpoint[i].base, &totals[i], price);
        json_begin(w, NULL, '{');
        json_put_text(w, "api_base", api->endpoint[i].base);
        put_totals(w, &totals[i], price);
        json_end(w, '}');
    }
    json_end(w, ']');
}

void qgen_say_usage(const struct api *api, const struct api_totals *totals, const struct prices *price)
{
    struct api_totals all = { 0 };

    for (int i = 0; i < api->n_endpoints; i++) {
        all.requests += totals[i].requests;
        all.again += totals[i].again;
        usage_add(&all.usage, &totals[i].usage);
    }
    if (api->n_endpoints > 1)
        say_endpoints(api, totals, price);
    put_totals(summary_json(), &all, price);
    say_totals(NULL, &all, price);
}

void qgen_say_cost_in_all(double cost)
{
    json_put_real(summary_json(), "cost_in_all", cost);
    log_info("cost %.4f with earlier runs", cost);
}

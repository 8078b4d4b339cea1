/* engine_say.c - docs/serving.md in the words of one manifest. What an engine can hold: cmd/tiers_for.h. */
#include "cmd/engine_say.h"

#include "base/json.h"
#include "base/log.h"
#include "cmd/tiers_for.h"

#include <limits.h>
#include <stdlib.h>

void engine_say_unheld(const struct manifest *m)
{
    const char *first = NULL;
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        const struct placement *p = &m->at[i];
        if (p->tier < 0 || tiers_for_holds(TIERS_VLLM_DROP, p->config))
            continue;
        first = first ? first : p->config;
        n++;
    }
    if (n)
        log_warn("%d context%s placed as variants that no serving engine can hold, such as %s: it computes them "
                 "(evp-tiers --for lets plans place others)",
                 n, n == 1 ? " is" : "s are", first);
}

void engine_say_line(const struct manifest *m, const char *path, const char *name_space)
{
    char *whole = realpath(path, NULL);
    struct buf text = { 0 }, word = { 0 };
    struct json_out w = { .buf = &text };
    bool drops = false;

    for (int i = 0; i < m->n && !drops; i++) {
        const char *config = m->at[i].config;
        drops = m->at[i].tier >= 0 && !tiers_for_holds(TIERS_VLLM, config) && tiers_for_holds(TIERS_VLLM_DROP, config);
    }
    json_begin(&w, NULL, '{');
    json_put_text(&w, "kv_connector", "EvpConnector");
    json_put_text(&w, "kv_connector_module_path", "evp.vllm");
    json_put_text(&w, "kv_role", "kv_consumer");
    json_put_text(&w, "kv_load_failure_policy", "recompute");
    json_begin(&w, "kv_connector_extra_config", '{');
    json_put_text(&w, "manifest", whole ? whole : path);
    if (name_space)
        json_put_text(&w, "name_space", name_space);
    if (drops)
        json_put_bool(&w, "dropped", true);
    json_end(&w, '}');
    json_end(&w, '}');
    buf_add_word(&word, buf_str(&text));
    log_info("a server finds the payloads with vllm serve MODEL --kv-transfer-config %s (others: docs/serving.md)",
             buf_str(&word));
    buf_release(&word);
    buf_release(&text);
    free(whole);
}

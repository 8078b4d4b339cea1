/* prefill_curve.c - keeps points at least a 64th of the context apart, so the last one, at all tokens, always fits.
 * Seconds measured outside the engine include slightly more than prefill_s; scaling removes the difference. */
#include "profiler/run/prefill_curve.h"

#include <stdbool.h>

void prefill_curve_note(struct prefill_curve *c, int tokens, double seconds)
{
    if (c->n >= PREFILL_POINTS || (int64_t)tokens * PREFILL_POINTS < (int64_t)(c->n + 1) * c->n_tokens ||
        (c->n > 0 && tokens <= c->tokens[c->n - 1]))
        return;
    c->tokens[c->n] = tokens;
    c->seconds[c->n++] = seconds;
}

int prefill_curve_keep(const struct prefill_curve *c, double prefill_s, struct table *t, struct err *err)
{
    bool whole = c->n > 0 && c->tokens[c->n - 1] == c->n_tokens;
    int n = whole ? c->n : 0;
    double scale = whole && c->seconds[n - 1] > 0 ? prefill_s / c->seconds[n - 1] : 0;

    if (table_alloc_curve(t, n, err))
        return err->code;
    for (int i = 0; i < n; i++) {
        double seconds = c->seconds[i] * scale;
        t->curve_context[i] = 0;
        t->curve_n_tokens[i] = c->tokens[i];
        t->curve_s[i] = i == n - 1 || seconds > prefill_s ? prefill_s : seconds;
    }
    return 0;
}

/* ops.c - the difference of two lists of kernels/timed.h. */
#include "tests/bench/ops.h"

#include <string.h>

struct ops ops_now(const struct backend *timed)
{
    struct ops now = { 0 };

    now.n = timed ? timed_list(timed, now.op) : 0;
    return now;
}

static const struct op_time *find(const struct ops *s, const char *name)
{
    static const struct op_time none;

    for (int i = 0; i < s->n; i++)
        if (strcmp(s->op[i].name, name) == 0)
            return &s->op[i];
    return &none;
}

void ops_put(struct json_out *w, const struct ops *from, const struct ops *to, const char *(*phase_of)(const char *op))
{
    for (int i = 0; i < to->n; i++) {
        const struct op_time *a = &to->op[i], *b = find(from, a->name);
        if (a->calls == b->calls)
            continue;
        json_begin(w, NULL, '{');
        json_put_text(w, "phase", phase_of(a->name));
        json_put_text(w, "op", a->name);
        json_put_int(w, "calls", a->calls - b->calls);
        json_put_real(w, "seconds", a->seconds - b->seconds);
        json_put_real(w, "flop", a->flop - b->flop);
        json_put_real(w, "bytes", a->bytes - b->bytes);
        json_end(w, '}');
    }
}

double ops_clock_s(struct backend *be)
{
    double best = 1;

    for (int i = 0; i < 100; i++) {
        double start = be->clock(be), taken = be->clock(be) - start;
        best = taken < best ? taken : best;
    }
    return best;
}

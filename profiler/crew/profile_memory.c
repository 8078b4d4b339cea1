/* profile_memory.c - contexts that cannot fit are reported and left out, until the others fit. */
#include "profiler/crew/profile_memory.h"

#include <stdlib.h>
#include <string.h>

/* The contexts whose memory is planned, and their work. */
struct planned {
    struct work **of;         // (n)
    struct engine_work *work; // (n)
    int n;
};

static void leave_out(struct planned *p, int at)
{
    size_t after = (size_t)(--p->n - at);

    p->of[at]->n_open = 0;
    memmove(p->of + at, p->of + at + 1, after * sizeof(*p->of));
    memmove(p->work + at, p->work + at + 1, after * sizeof(*p->work));
}

static int plan_all(struct planned *p, struct engine *e, struct engine_plan *plan, const struct run_watch *watch,
                    struct err *err)
{
    const uint64_t limit = plan->limit;

    while (p->n > 0) {
        *plan = (struct engine_plan){ .limit = limit };
        if (!engine_plan(e, p->work, p->n, plan, err))
            return 0;
        watch->failed(watch->arg, p->of[plan->refused], err);
        leave_out(p, plan->refused);
    }
    return err_set(err, ERR_NOMEM, "no context fits in memory");
}

int profile_memory(struct grid *g, struct engine *e, struct engine_plan *plan, const struct run_watch *watch,
                   struct err *err)
{
    int n_configs;
    const struct config **config = grid_configs(g, &n_configs, err);
    struct planned p = { calloc((size_t)g->n_work, sizeof(*p.of)), calloc((size_t)g->n_work, sizeof(*p.work)), 0 };
    int code = config && p.of && p.work ? 0 : err_nomem(err);

    for (int i = 0; i < g->n_work && !code; i++)
        if (g->work[i].n_open > 0) {
            p.of[p.n] = &g->work[i];
            p.work[p.n++] = work_at_most(g, &g->work[i], config, n_configs);
        }
    if (!code)
        code = plan_all(&p, e, plan, watch, err);
    free(p.of);
    free(p.work);
    free(config);
    return code;
}

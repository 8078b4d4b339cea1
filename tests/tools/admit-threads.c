/* admit-threads MANIFEST OUT - four threads use one plan. A program of its own, because Criterion does not run under
 * ThreadSanitizer. Each thread admits, updates, uses and removes its contexts, asks for the status and saves now and
 * then. At the end all of these contexts are gone, and the plan is saved once more. The locale is the caller's.
 */
#include "loader/libevicpress/evicpress_plan.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, CONTEXTS = 16, ROUNDS = 25 };

struct worker {
    struct evp_plan *plan;
    const char *out;
    int number;
    size_t operations;
    struct evp_error error;
};

static int one_context(struct worker *w, int i)
{
    static const int32_t tokens[] = { 1, 2, 3 };
    char id[32];
    struct evp_variant variant[] = { { .config = "none", .bytes = 1000 * (i + 1), .quality = 1 },
                                     { .config = "kivi:bits=2", .bytes = 200 * (i + 1), .quality = 0.5 } };
    struct evp_context c = { .id = id,
                             .tokens = tokens,
                             .n_tokens = 3,
                             .frequency = i,
                             .prefill_s = w->number + 1,
                             .variant = variant,
                             .n_variants = 2 };
    struct evp_update u = { .id = id, .frequency = CONTEXTS - i };
    struct evp_operations todo;
    struct evp_plan_state state;

    snprintf(id, sizeof(id), "%d/%d", w->number, i);
    if (evp_plan_admit(w->plan, &c, &todo, &w->error))
        return -1;
    w->operations += todo.n;
    evp_operations_release(&todo);
    if (evp_plan_update(w->plan, &u, &todo, &w->error))
        return -1;
    w->operations += todo.n;
    evp_operations_release(&todo);
    struct evp_use use = { .id = id, .tokens = tokens, .n_tokens = 3 };
    if (evp_plan_used(w->plan, &use, &todo, &w->error))
        return -1;
    w->operations += todo.n;
    evp_operations_release(&todo);
    if (i % 8 == 0 && evp_plan_save(w->plan, w->out, &w->error))
        return -1;
    return evp_plan_status(w->plan, &state, &w->error);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    char id[32];

    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < CONTEXTS; i++)
            if (one_context(w, i))
                return w;
        for (int i = 0; i < CONTEXTS; i++) {
            snprintf(id, sizeof(id), "%d/%d", w->number, i);
            if (evp_plan_remove(w->plan, id, NULL, &w->error))
                return w;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker worker[THREADS];
    pthread_t thread[THREADS];
    struct evp_plan *plan;
    struct evp_plan_state state;
    struct evp_error error;
    void *failed;
    int status = 0;

    setlocale(LC_ALL, "");
    if (argc != 3 || evp_plan_open(&plan, argv[1], &error)) {
        fprintf(stderr, "admit-threads: %s\n", argc == 3 ? error.text : "usage: admit-threads MANIFEST OUT");
        return 2;
    }
    for (int t = 0; t < THREADS; t++) {
        worker[t] = (struct worker){ .plan = plan, .out = argv[2], .number = t };
        if (pthread_create(&thread[t], NULL, work, &worker[t]))
            return 2;
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], &failed);
        if (failed)
            fprintf(stderr, "admit-threads: %s\n", worker[t].error.text);
        status |= failed != NULL || worker[t].operations == 0;
    }
    status |= evp_plan_save(plan, argv[2], &error) || evp_plan_status(plan, &state, &error);
    printf("%lld contexts\n", (long long)state.n_contexts);
    evp_plan_close(plan);
    return status;
}

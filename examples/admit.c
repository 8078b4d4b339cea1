/* admit.c - a new context between two nightly plans. Compiled against an installed EvicPress:
 *
 *     cc admit.c $(pkg-config --cflags --libs evicpress) -Wl,-rpath,$(pkg-config --variable=libdir evicpress) -o admit
 *     echo 101 7592 2088 ... |
 *         ./admit manifest.jsonl next.jsonl chat/17 3 2.1 none,94371840,1,0 kivi:bits=2,14155776,0.93,0.01
 *
 * `evp-plan --online` made manifest.jsonl. Reads the context's token ids from standard input. The command line gives
 * its expected number of uses until the next plan, its prefill in seconds and its variants (config, bytes, quality,
 * seconds to decompress). Prints the operations, in an order in which no tier exceeds its capacity, and writes the plan
 * with the new context.
 */
#include <evicpress_plan.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 1 << 20, VARIANTS = 16 };

static size_t read_tokens(int32_t *tokens)
{
    size_t n = 0;

    while (n < TOKENS && scanf("%d", &tokens[n]) == 1)
        n++;
    return n;
}

/* Adds the context to the plan and prints the operations. Returns 0, or -1 with the error. */
static int admit(struct evp_plan *plan, const struct evp_context *context, struct evp_error *error)
{
    struct evp_operations todo;
    struct evp_plan_state state;

    if (evp_plan_admit(plan, context, &todo, error))
        return -1;
    for (size_t i = 0; i < todo.n; i++) {
        const struct evp_operation *op = &todo.at[i];
        printf("%s: %s on %s -> %s on %s, %lld bytes\n", op->id, op->from_config, op->from_tier, op->to_config,
               op->to_tier, (long long)op->to_bytes);
    }
    evp_operations_release(&todo);
    if (evp_plan_status(plan, &state, error))
        return -1;
    printf("%lld contexts, utility %.4f, at most %.4f is possible\n", (long long)state.n_contexts, state.objective,
           state.upper_bound);
    return 0;
}

int main(int argc, char **argv)
{
    static int32_t tokens[TOKENS];
    char config[VARIANTS][128];
    struct evp_variant variant[VARIANTS] = { { 0 } };
    struct evp_context context = { .tokens = tokens, .variant = variant };
    struct evp_plan *plan = NULL;
    struct evp_error error = { 0, "usage: admit MANIFEST NEXT ID FREQUENCY PREFILL_S CONFIG,BYTES,QUALITY,SECONDS..." };
    int failed = argc < 7 || argc > 6 + VARIANTS;

    for (int i = 6; i < argc && !failed; i++, context.n_variants++) {
        struct evp_variant *v = &variant[i - 6];
        long long bytes;
        failed = sscanf(argv[i], "%127[^,],%lld,%lf,%lf", config[i - 6], &bytes, &v->quality, &v->decompress_s) != 4;
        v->config = config[i - 6];
        v->bytes = bytes;
    }
    if (!failed) {
        context.id = argv[3];
        context.frequency = strtod(argv[4], NULL);
        context.prefill_s = strtod(argv[5], NULL);
        context.n_tokens = (int64_t)read_tokens(tokens);
        failed = evp_plan_open(&plan, argv[1], &error) || admit(plan, &context, &error) ||
                 evp_plan_save(plan, argv[2], &error);
    }
    if (failed)
        fprintf(stderr, "admit: %s\n", error.text);
    evp_plan_close(plan);
    return failed;
}

/* evicpress_plan.h - where a new context goes before the next nightly plan. Younger than evicpress.h: it may still change.
 *
 * A live plan keeps a manifest of `evp-plan --online` up to date while contexts come, are used more or less, and go:
 *
 *     struct evp_plan *plan;
 *     struct evp_operations todo;
 *     struct evp_variant variant[] = { { .config = "none", .bytes = 94371840, .quality = 1 },
 *                                      { .config = "kivi:bits=2", .bytes = 14155776, .quality = 0.93 } };
 *     struct evp_context context = { .id = "chat/17", .tokens = tokens, .n_tokens = n_tokens, .frequency = 3,
 *                                    .prefill_s = 2.1, .question_s = 0.03, .variant = variant, .n_variants = 2 };
 *
 *     if (evp_plan_open(&plan, "manifest.jsonl", &error))
 *         return complain(error.text);
 *     if (evp_plan_admit(plan, &context, &todo, &error))
 *         complain(error.text);
 *     for (size_t i = 0; i < todo.n; i++)
 *         carry_out(&todo.at[i]);                   // what frees bytes comes before what needs them
 *     evp_operations_release(&todo);
 *     evp_plan_save(plan, "next.jsonl", &error);    // for evp-pack, evp-load and evp_open()
 *     evp_plan_close(plan);
 *
 * The night's prices per byte stay. The utility of a context, in seconds, is
 *
 *     (alpha * quality - TTFT - slo_weight * lateness) * frequency
 *
 * with alpha, slo_weight, slo_ttft_s and tiers of the manifest. Lateness is how many seconds later than slo_ttft_s the
 * first token is expected to come: E max(0, TTFT - slo_ttft_s) = (m - slo_ttft_s) * Phi(z) + s * phi(z) for a normal
 * TTFT of mean m and standard deviation s, z = (m - slo_ttft_s) / s; s is what the tier's reads and the context's
 * measured prefills and questions spread by, as far as the manifest says. A context
 * goes where its utility less price * bytes is highest; when that tier is full, the contexts there with the least to
 * lose per byte give way. When that is worth less than refusing the context, it is refused: nothing else moves. The
 * upper bound stays proven, so that the gap says when planning again would pay. An event costs microseconds.
 *
 * Floors and pins of the manifest hold, and every byte written must bring the manifest's move_cost. A new context
 * becomes part of the nightly plan once it has been profiled.
 */
#ifndef EVICPRESS_PLAN_H
#define EVICPRESS_PLAN_H

#include "evicpress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct evp_plan;

/* One variant of a context: its cache under one config. */
struct evp_variant {
    const char *config;   /* "keydiff:drop=0.5" */
    int64_t bytes;        /* that it takes on a tier */
    double quality;       /* 0 to 1 */
    double decompress_s;  /* seconds */
    uint64_t reserved[4]; /* zero */
};

struct evp_context {
    const char *id;
    const char *token_digest; /* SHA-256 of the tokens as little-endian int32, 64 hex digits; NULL: of `tokens` */
    const int32_t *tokens;    /* (n_tokens) read only when token_digest is NULL */
    int64_t n_tokens;
    int64_t kv_bytes;                  /* of the untouched cache; 0: not known */
    double frequency;                  /* uses until the next plan, as the access log counts them */
    double prefill_s, question_s;      /* to compute all of it, and then one question */
    const struct evp_variant *variant; /* (n_variants) at most 127, each config once, of methods that EvicPress has */
    size_t n_variants;                 /* 0: it is always recomputed */
    uint64_t reserved[8];              /* zero */
};

/* What changes about a context of the plan. */
struct evp_update {
    const char *id;
    double frequency;
    const struct evp_variant *variant; /* (n_variants) instead of those it had; NULL: they stay */
    size_t n_variants;
    uint64_t reserved[8]; /* zero */
};

enum evp_operation_kind {
    EVICPRESS_INSERT = 1, /* it was not stored, now it is */
    EVICPRESS_RECOMPRESS, /* another variant, or the same with other bytes */
    EVICPRESS_MOVE,       /* the same variant on another tier */
    EVICPRESS_EVICT       /* it was stored, now it is not */
};

/* A context that is not stored has tier "recompute", config "none" and no bytes. */
struct evp_operation {
    int kind; /* enum evp_operation_kind */
    const char *id;
    const char *from_config, *from_tier;
    const char *to_config, *to_tier;
    int64_t from_bytes, to_bytes;
    uint64_t reserved[4];
};

/* Carried out in the order of `at`, no tier ever holds more than its capacity. A context may come twice: evicted to
 * break a circle of moves, and inserted again. Events of several threads are carried out in the order of `event`. */
struct evp_operations {
    const struct evp_operation *at; /* (n) the caller's with their texts, until evp_operations_release() */
    size_t n;
    uint64_t event; /* 1 for the plan's first event */
    uint64_t reserved[4];
};

struct evp_plan_tier {
    char name[32];
    int64_t capacity, free_bytes; /* INT64_MAX: unlimited */
};

struct evp_plan_state {
    int64_t n_contexts;
    double objective;   /* utility of all contexts */
    double upper_bound; /* no plan for them has a higher utility */
    double gap;         /* (upper_bound - objective) / |upper_bound| */
    size_t n_tiers;
    struct evp_plan_tier tier[16]; /* (n_tiers) fast to slow */
    uint64_t reserved[8];
};

/* Opens a manifest of `evp-plan --online` or evp_plan_save(), as if its operations had been carried out. On success the
 * caller closes *plan; *plan is NULL otherwise. */
EVICPRESS_API int evp_plan_open(struct evp_plan **plan, const char *manifest, struct evp_error *error);

/* A context comes, changes, goes; the plan's answer is *operations. `operations` may be NULL: evp_plan_save() writes
 * them down too. On failure it is empty, and the plan is what it was. After EVICPRESS_MEMORY the plan may only be closed. */
EVICPRESS_API int evp_plan_admit(struct evp_plan *plan, const struct evp_context *context,
                                 struct evp_operations *operations, struct evp_error *error);
EVICPRESS_API int evp_plan_update(struct evp_plan *plan, const struct evp_update *update,
                                  struct evp_operations *operations, struct evp_error *error);
EVICPRESS_API int evp_plan_remove(struct evp_plan *plan, const char *id, struct evp_operations *operations,
                                  struct evp_error *error);

EVICPRESS_API void evp_operations_release(struct evp_operations *operations); /* NULL and empty are fine */

EVICPRESS_API int evp_plan_status(struct evp_plan *plan, struct evp_plan_state *state, struct evp_error *error);

/* Writes the plan as a manifest, whole or not at all. Its operations lead from the manifest that was opened, and it can
 * be opened in turn. It has the plan as it was at one moment, after the call began. Events go on meanwhile and wait for
 * milliseconds at most. EVICPRESS_ARGUMENT: the plan has no contexts and none to evict; a manifest must have one. */
EVICPRESS_API int evp_plan_save(struct evp_plan *plan, const char *manifest, struct evp_error *error);

/* NULL is fine. No other call on the plan may be at work. */
EVICPRESS_API void evp_plan_close(struct evp_plan *plan);

#ifdef __cplusplus
}
#endif

#endif

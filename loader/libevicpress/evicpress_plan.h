/* evicpress_plan.h - where a new context goes before the next nightly plan. Newer than evicpress.h: it may still
 * change.
 *
 * A live plan keeps a manifest of `evp-plan --online` up to date while contexts come, go, and change in frequency:
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
 *         carry_out(&todo.at[i]);                   // operations that free bytes come before those that need them
 *     evp_operations_release(&todo);
 *     evp_plan_save(plan, "next.jsonl", &error);    // for evp-pack, evp-load and evp_open()
 *     evp_plan_close(plan);
 *
 * The utility of a context, in seconds, is
 *
 *     (alpha * quality - TTFT - slo_weight * lateness) * frequency
 *
 * with alpha, slo_weight, slo_ttft_s and tiers of the manifest. Lateness is the expected time by which the first token
 * exceeds slo_ttft_s: E max(0, TTFT - slo_ttft_s) = (m - slo_ttft_s) * Phi(z) + s * phi(z) for a normal TTFT of mean m
 * and standard deviation s, z = (m - slo_ttft_s) / s. s combines the known spreads of the tier's reads and of the
 * context's measured prefills and questions.
 *
 * A context goes where it gains most: its utility there for each use, by the chance of a use, less what writing costs
 * and what the contexts lose that must leave, those first that lose least per byte. If it gains nowhere, it is not
 * stored. The upper bound is proven by the nightly plan's prices, so the gap shows when planning again would pay. An
 * event costs microseconds, evp_plan_status() looks at all contexts.
 *
 * Floors and pins of the manifest hold, and each byte written must gain at least the manifest's move_cost. A new
 * context enters the nightly plan once it has been profiled.
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
    int64_t bytes;        /* on a tier */
    double quality;       /* 0 to 1 */
    double decompress_s;  /* seconds */
    uint64_t reserved[4]; /* zero */
};

struct evp_context {
    const char *id;
    const char *token_digest; /* SHA-256 of the tokens as little-endian int32, 64 hex digits; NULL: of `tokens` */
    const int32_t *tokens;    /* (n_tokens) read only when token_digest is NULL */
    int64_t n_tokens;
    int64_t kv_bytes;                  /* of the uncompressed cache; 0: not known */
    double frequency;                  /* uses until the next plan, as the access log counts them; with it no utility
                                          may be above 1e15 in size */
    double prefill_s, question_s;      /* to prefill the whole context, and then one question */
    const struct evp_variant *variant; /* (n_variants) at most 127, different configs of known methods */
    size_t n_variants;                 /* 0: always recomputed */
    uint64_t reserved[8];              /* zero */
};

/* Changes of a context in the plan. */
struct evp_update {
    const char *id;
    double frequency;
    const struct evp_variant *variant; /* (n_variants) replace the present ones; NULL: no change */
    size_t n_variants;
    uint64_t reserved[8]; /* zero */
};

/* One use of a context. For a context that is in the plan only the id is read. */
struct evp_use {
    const char *id;
    const char *token_digest; /* as in struct evp_context */
    const int32_t *tokens;    /* (n_tokens) */
    int64_t n_tokens;
    double at_s;          /* when, in seconds of any clock; 0: not told */
    uint64_t reserved[7]; /* zero */
};

enum evp_operation_kind {
    EVICPRESS_INSERT = 1, /* not stored before, stored now */
    EVICPRESS_RECOMPRESS, /* another variant, or the same with different bytes */
    EVICPRESS_MOVE,       /* the same variant on another tier */
    EVICPRESS_EVICT       /* stored before, not stored now */
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

/* Carry them out in the order of `at`: then no tier ever exceeds its capacity. A context may come twice: evicted to
 * break a circle of moves, then inserted again. With several threads, carry out events in the order of `event`. */
struct evp_operations {
    const struct evp_operation *at; /* (n) owned by the caller with their texts; free with evp_operations_release() */
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
    double upper_bound; /* no plan for these contexts has a higher utility */
    double gap;         /* (upper_bound - objective) / |upper_bound| */
    size_t n_tiers;
    struct evp_plan_tier tier[16]; /* (n_tiers) fast to slow */
    uint64_t reserved[8];
};

/* Opens a manifest of `evp-plan --online` or evp_plan_save(), as if its operations had been carried out. On success the
 * caller closes *plan; otherwise *plan is NULL. */
EVICPRESS_API int evp_plan_open(struct evp_plan **plan, const char *manifest, struct evp_error *error);

/* The three events: a context comes, changes, goes. *operations gets the resulting operations; it may be NULL, because
 * evp_plan_save() writes them too. On failure it is empty and the plan unchanged. After EVICPRESS_MEMORY the plan can
 * only be closed. */
EVICPRESS_API int evp_plan_admit(struct evp_plan *plan, const struct evp_context *context,
                                 struct evp_operations *operations, struct evp_error *error);
EVICPRESS_API int evp_plan_update(struct evp_plan *plan, const struct evp_update *update,
                                  struct evp_operations *operations, struct evp_error *error);
EVICPRESS_API int evp_plan_remove(struct evp_plan *plan, const char *id, struct evp_operations *operations,
                                  struct evp_error *error);

/* A context was used: call it when its first token is out. The plan learns from it how often contexts are used; from
 * then on frequencies, in the objective and in saved manifests, are chances of use times the opened manifest's sum of
 * frequencies. With at_s it also learns how busy GPUs and tiers are, taking for granted that what is stored was read
 * and everything else computed. A context that is not in the plan enters it with the mean quality, size per token and
 * times of the manifest's contexts under each config. Only the used context is ever inserted, when its cache is at
 * hand; others move, change or go. What was read keeps its variant, or is evicted so that its next use computes it. A
 * context that came by its use leaves the plan, without an operation, when it is not stored, less likely than the mean
 * to be used, and one of more than 512 and eight times those that are stored, unless evp_plan_update() was called for
 * it. evp_plan_save() keeps what was learned of uses. */
EVICPRESS_API int evp_plan_used(struct evp_plan *plan, const struct evp_use *use, struct evp_operations *operations,
                                struct evp_error *error);

/* ---- what happened to the payloads ----
 *
 * The plan takes for granted that operations are carried out and that payloads stay. Tell it when that is not so:
 *
 *   - evp_put() or evp_move() fails, or there is no payload to put: evp_remove() the context, call evp_plan_lost(),
 *     skip its further operations and go on with the others, which need the bytes that were to become free. After
 *     EVICPRESS_BUSY you may call it again instead.
 *   - evp_remove() fails: call it again, now or later. Until then the tier has fewer free bytes than the plan knows,
 *     and puts may fail. EVICPRESS_UNKNOWN is no failure here.
 *   - evp_fetch() or evp_payload_open() fails with EVICPRESS_GONE or EVICPRESS_DAMAGED: evp_remove() and
 *     evp_plan_lost().
 *   - A tier is empty, as a folder in memory after a restart: evp_plan_tier_lost().
 *
 * A lost context stays in the plan without a place, and all others stay where they are. So nothing is to be carried
 * out. Its next evp_plan_update() finds it a place, even with the values that it has; so may any later event.
 * Objective, bound and free bytes are those of the places. A pinned context keeps its place: put its payload there
 * again.
 */

/* EVICPRESS_ARGUMENT: the context is pinned. */
EVICPRESS_API int evp_plan_lost(struct evp_plan *plan, const char *id, struct evp_error *error);

/* The same for all contexts on a tier, except those that are pinned to it. */
EVICPRESS_API int evp_plan_tier_lost(struct evp_plan *plan, const char *tier, struct evp_error *error);

EVICPRESS_API void evp_operations_release(struct evp_operations *operations); /* NULL and empty are fine */

EVICPRESS_API int evp_plan_status(struct evp_plan *plan, struct evp_plan_state *state, struct evp_error *error);

/* Writes the plan as a manifest, whole or not at all, for evp_plan_open() or evp-load. Its operations are relative to
 * the opened manifest. It shows the plan at one moment after the call began; events continue meanwhile and wait
 * milliseconds at most. EVICPRESS_ARGUMENT: the plan has no contexts and none to evict; a manifest must have one. */
EVICPRESS_API int evp_plan_save(struct evp_plan *plan, const char *manifest, struct evp_error *error);

/* NULL is fine. No other call on the plan may be running. */
EVICPRESS_API void evp_plan_close(struct evp_plan *plan);

#ifdef __cplusplus
}
#endif

#endif

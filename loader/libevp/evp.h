/* evp.h - the serving system's side of EvicPress: which prefix of a prompt has its KV cache on a tier, and its bytes;
 * and where to put a new context before the next nightly plan.
 *
 *     struct evp_store *store;
 *     struct evp_prefix found;
 *     struct evp_error error;
 *
 *     if (evp_open(&store, "manifest.jsonl", &error))
 *         return complain(error.text);
 *     if (evp_find(store, tokens, n_tokens, &found, &error) == 1) {
 *         void *payload = malloc(found.size);
 *         if (payload && !evp_fetch(store, &found, payload, found.size, &error))
 *             use(payload, found.size, found.n_tokens);   // prefill goes on at token found.n_tokens
 *         free(payload);
 *     }
 *     evp_close(store);
 *
 * A context is a token prefix. The manifest says which tiers there are; what is in them is read from the indexes that
 * evp-load keeps in the tiers' folders, which are true at every moment, also while evp-load is at work. So a manifest
 * that was planned but not loaded places nothing, and while one is being loaded, no half payload is ever found.
 *
 * A payload is a safetensors file: any reader of that format opens the fetched bytes. Its metadata carries config,
 * model_digest, token_digest and n_tokens, its tensor `tokens` the ids of the context; found.n_tokens is the position
 * of the next token, whatever the config kept.
 *
 * Several threads may call every function on one store or plan, except those that close it. Nothing here prints,
 * exits, changes a signal or keeps state outside the store or plan. Functions return 0 or more on success and one of
 * enum evp_code on failure; `error` may be NULL, and gets code and sentence otherwise.
 *
 * Compile with `pkg-config --cflags --libs evp`. Within one major version of the library, the functions, the order and
 * types of the members below, and the numbers of the codes do not change.
 */
#ifndef EVP_H
#define EVP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the library, the tools and their man pages; the Makefile reads it from here. */
#define EVP_VERSION       "0.2.0"
#define EVP_VERSION_MAJOR 0
#define EVP_VERSION_MINOR 2
#define EVP_VERSION_PATCH 0

#define EVP_API __attribute__((visibility("default")))

struct evp_store;

enum evp_code {
    EVP_OK = 0,
    EVP_MEMORY = -1,   /* out of memory */
    EVP_IO = -2,       /* a file cannot be opened, read or written */
    EVP_DAMAGED = -3,  /* a manifest, an index or a payload is not what it says it is */
    EVP_GONE = -4,     /* the prefix is no longer placed: call evp_find() again */
    EVP_SMALL = -5,    /* the buffer is smaller than the payload */
    EVP_ARGUMENT = -6, /* an argument is out of range */
    EVP_UNKNOWN = -7,  /* the plan has no such context */
    EVP_EXISTS = -8    /* the plan has that context already */
};

struct evp_error {
    int code;
    char text[512]; /* one sentence, without a full stop */
};

/* A placed prefix. Plain data: copy it, keep it, give it to another thread. */
struct evp_prefix {
    int64_t n_tokens;      /* how many tokens of the prompt it covers */
    uint64_t size;         /* bytes that evp_fetch() writes */
    char config[128];      /* compression: "keydiff:drop=0.5"; "none" is the cache as it was */
    char tier[32];         /* name of the tier it is on */
    char token_digest[72]; /* SHA-256 of the tokens, hex */
    char checksum[24];     /* XXH3-64 of the payload, hex */
    char reserved[64];     /* zero */
};

/* Opens the manifest at a path and the indexes of its tiers. On success the caller closes *store; *store is NULL
 * otherwise. A tier whose folder is missing holds nothing. */
EVP_API int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error);

/* Finds the longest prefix of tokens[0..n) that is on a tier: 1 and *prefix, or 0 when there is none. When it is on
 * several tiers, the fastest one counts. Costs one SHA-256 over the tokens, and one finalisation per different length
 * of placed contexts. */
EVP_API int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
                     struct evp_error *error);

/* Reads the payload of a found prefix into a buffer of `size` bytes, writes prefix->size bytes of it, and verifies the
 * checksum. When evp-load has taken the payload away meanwhile, looks for it in the other tiers; EVP_GONE: it is in
 * none. After a failure the buffer's content means nothing. */
EVP_API int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
                      struct evp_error *error);

/* Reads again what has changed on disk: the manifest, the indexes. 1: something had, 0: nothing. Costs a stat() per
 * tier when nothing has; call it as often as changes should be seen. After a failure the store is what it was. */
EVP_API int evp_refresh(struct evp_store *store, struct evp_error *error);

/* NULL is fine. No other call on the store may be at work. */
EVP_API void evp_close(struct evp_store *store);

/* What a code means, in words; never NULL. */
EVP_API const char *evp_message(int code);

/* ---- between two nightly plans -----------------------------------------------------------------------------------
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
 * The night's prices per byte stay. The utility of a context is (alpha * quality - TTFT) * frequency, with alpha and
 * tiers of the manifest. A context goes where its utility less price * bytes is highest; when that tier is full, the
 * contexts there with the least to lose per byte give way. The upper bound stays proven, so that the gap says when
 * planning again would pay. An event costs microseconds.
 *
 * Floors and pins of the manifest hold. A live plan does not count what moving costs; the nightly plan does. A new
 * context becomes part of the nightly plan once it has been profiled.
 */

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
    const struct evp_variant *variant; /* (n_variants) at most 127, each config once */
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
    EVP_INSERT = 1, /* it was not stored, now it is */
    EVP_RECOMPRESS, /* another variant, or the same with other bytes */
    EVP_MOVE,       /* the same variant on another tier */
    EVP_EVICT       /* it was stored, now it is not */
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
EVP_API int evp_plan_open(struct evp_plan **plan, const char *manifest, struct evp_error *error);

/* A context comes, changes, goes; the plan's answer is *operations. `operations` may be NULL: evp_plan_save() writes
 * them down too. On failure it is empty, and the plan is what it was. After EVP_MEMORY the plan may only be closed. */
EVP_API int evp_plan_admit(struct evp_plan *plan, const struct evp_context *context, struct evp_operations *operations,
                           struct evp_error *error);
EVP_API int evp_plan_update(struct evp_plan *plan, const struct evp_update *update, struct evp_operations *operations,
                            struct evp_error *error);
EVP_API int evp_plan_remove(struct evp_plan *plan, const char *id, struct evp_operations *operations,
                            struct evp_error *error);

EVP_API void evp_operations_release(struct evp_operations *operations); /* NULL and empty are fine */

EVP_API int evp_plan_status(struct evp_plan *plan, struct evp_plan_state *state, struct evp_error *error);

/* Writes the plan as a manifest, whole or not at all. Its operations lead from the manifest that was opened, and it can
 * be opened in turn. Events wait while the rows are copied, not while they are written. EVP_ARGUMENT: the plan has no
 * contexts and none to evict; a manifest must have one. */
EVP_API int evp_plan_save(struct evp_plan *plan, const char *manifest, struct evp_error *error);

/* NULL is fine. No other call on the plan may be at work. */
EVP_API void evp_plan_close(struct evp_plan *plan);

#ifdef __cplusplus
}
#endif

#endif

/* evp.h - the serving system's side of EvicPress: which prefix of a prompt has its KV cache on a tier, and its bytes,
 * whole or in parts; where to put a new context before the next nightly plan; and putting it there.
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
 * evp-load keeps in the tiers' folders, which are true at every moment, also while evp-load is at work. A folder is
 * taken only when it belongs to the user, to root or to the owner of the manifest, and nobody else may write there. So
 * a manifest that was planned but not loaded places nothing, and while one is being loaded, no half payload is ever
 * found. Of a tier on Redis the index is in its folder `state`, and the payloads come from the server; connections wait
 * in the store for the next call (docs/serving.md has the environment's variables).
 *
 * A payload is a safetensors file: any reader of that format opens the fetched bytes. Its metadata carries config,
 * model_digest, token_digest and n_tokens, its tensor `tokens` the ids of the context; found.n_tokens is the position
 * of the next token, whatever the config kept.
 *
 * Several threads may call every function on one store, plan or payload, except those that close it. A process may fork
 * at any moment, also while other threads are in a call: stores, plans and payloads go on in parent and child, each
 * with its own copy of a plan. Nothing here prints, exits, changes a signal or keeps state outside of them, but for a
 * list of the stores and plans that fork() goes through, and evp-redis.so, which stays open once a tier needed it. No
 * thread is left behind: those of evp_plan_open(), at most eight with the caller's and as many as it may use
 * processors, take no signals and are gone when it returns. Functions return 0 or more on success and one of enum
 * evp_code on failure; `error` may be NULL, and gets code and sentence otherwise.
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
    EVP_IO = -2,       /* a file cannot be opened, read or written, or a server not be reached */
    EVP_DAMAGED = -3,  /* a manifest, an index or a payload is not what it says it is */
    EVP_GONE = -4,     /* the prefix is no longer placed: call evp_find() again */
    EVP_SMALL = -5,    /* the buffer is smaller than the payload */
    EVP_ARGUMENT = -6, /* an argument is out of range */
    EVP_UNKNOWN = -7,  /* there is no such context, tier or tensor */
    EVP_EXISTS = -8,   /* the plan has that context already */
    EVP_FULL = -9,     /* a tier has too few free bytes */
    EVP_BUSY = -10     /* another process is changing a tier */
};

struct evp_error {
    int code;
    char text[512]; /* one sentence, without a full stop */
};

/* A placed prefix: a context, or a part of one. Plain data: copy it, keep it, give it to another thread. */
struct evp_prefix {
    int64_t n_tokens;      /* how many tokens of the prompt it covers */
    uint64_t size;         /* bytes that evp_fetch() writes */
    char config[128];      /* compression: "keydiff:drop=0.5"; "none" is the cache as it was */
    char tier[32];         /* name of the tier it is on */
    char token_digest[72]; /* SHA-256 of the tokens, hex */
    char checksum[24];     /* XXH3-64 of the payload, hex; "" of a part of a context, which has none of its own */
    char opaque[64];       /* the library's: where the payload is */
};

/* Are fetched bytes compared with their checksum? */
enum evp_verify { EVP_VERIFY = 0, EVP_TRUST = 1 };

/* Options of a store. `size` is sizeof(struct evp_options), so that later versions can have more of them; all others
 * may be zero. */
struct evp_options {
    size_t size;
    const char *name_space; /* as of evp-load --namespace; NULL: the manifest's model */
    double wait_s;          /* that evp_put() and its like wait for another process to end its changes */
    int verify;             /* enum evp_verify: what evp_fetch() does */
};

/* Opens the manifest at a path and the indexes of its tiers. On success the caller closes *store; *store is NULL
 * otherwise. A tier whose folder is missing, or cannot be trusted or understood, holds nothing; evp_get_tier() says so.
 */
EVP_API int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error);
EVP_API int evp_open_with(struct evp_store **store, const char *manifest, const struct evp_options *options,
                          struct evp_error *error);

/* What the store knows of a tier of its manifest. Nothing is ever found on a tier whose code is not EVP_OK. */
struct evp_tier {
    char name[32];
    int code;          /* EVP_OK; EVP_GONE: its folder or disk is not there; EVP_UNKNOWN: the library does not serve its
                          kind; EVP_ARGUMENT: its path is relative, so it depends on the working directory;
                          EVP_DAMAGED: its index is; EVP_IO: the folder is somebody else's, or open to others */
    char text[256];    /* one sentence, without a full stop; "" with EVP_OK */
    uint64_t n_placed; /* contexts on it, those of other namespaces included */
    uint64_t reserved[8];
};

/* Tells of tier number i, from 0 in the manifest's order: 1 and *tier, or 0 when there are not so many. */
EVP_API int evp_get_tier(struct evp_store *store, size_t i, struct evp_tier *tier, struct evp_error *error);

/* Finds the longest prefix of tokens[0..n) that is on a tier: 1 and *prefix, or 0 when there is none. When it is on
 * several tiers, the fastest one counts. A context counts as a whole; where evp-load --chunks or evp_put() asked for
 * it, contexts of config "none" can also be found in part: their first 256 tokens, their first 512, and so on. Costs
 * one SHA-256 over the tokens, finalised at every 256th, and a look into an index where a context may end in the chunk
 * that follows. */
EVP_API int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
                     struct evp_error *error);

/* Reads the payload of a found prefix into a buffer of `size` bytes, writes prefix->size bytes of it, and verifies the
 * checksum, unless the store's options say otherwise. Of a part of a context that is a payload of its first n_tokens
 * alone, made of the context's, whose tensors are read whole to be verified. When evp-load has taken the payload away
 * meanwhile, looks for it in the other tiers; EVP_GONE: it is in none. After a failure the buffer's content means
 * nothing. */
EVP_API int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
                      struct evp_error *error);

/* ---- a payload in parts ---------------------------------------------------------------------------------------
 *
 *     struct evp_payload *payload;
 *     struct evp_range keys = { .tensor = "layers.7.k", .first = 2, .n = 1 };   // of head 2 alone
 *
 *     if (evp_payload_open(&payload, store, &found, &error))
 *         return complain(error.text);
 *     if (evp_fetch_range(payload, &keys, buffer, size, &error))
 *         complain(error.text);
 *     evp_payload_close(payload);
 *
 * An open payload stays readable when its prefix is moved or removed meanwhile, unless it is on Redis. Only the header
 * of its file is read when it is opened, and of a part of a context its tokens. docs/formats/payload.md says which
 * tensors there are. Those of a part lie in the file of the whole context: evp_locate() tells of them as they are
 * there, and evp_fetch_range() reads the part's rows, the first n_tokens.
 */

struct evp_payload;

/* On success the caller closes *payload; *payload is NULL otherwise. EVP_GONE as for evp_fetch(). */
EVP_API int evp_payload_open(struct evp_payload **payload, struct evp_store *store, const struct evp_prefix *prefix,
                             struct evp_error *error);
EVP_API void evp_payload_close(struct evp_payload *payload); /* NULL is fine */

/* Where bytes lie, for readers of their own: mmap(), O_DIRECT (fcntl() sets it on a copy of the descriptor), GPUDirect
 * Storage. What they read is compared with no checksum, unless they do it. */
struct evp_location {
    int fd;                /* open for reading until evp_payload_close(); dup() it to keep it longer; -1: the payload
                              is in no file, so read it with evp_fetch_range() */
    int n_dims;            /* of a tensor */
    uint64_t offset, size; /* bytes; tensors begin at any offset */
    int64_t dim[8];        /* (n_dims) */
    char name[128];        /* "layers.7.k"; "" of a whole payload */
    char type[8];          /* "BF16", as safetensors calls it */
    char checksum[24];     /* XXH3-64 of a tensor's bytes, hex */
    uint64_t reserved[8];
};

/* Tells where a tensor lies, or for NULL the whole payload. EVP_UNKNOWN: it has no such tensor. */
EVP_API int evp_locate(struct evp_payload *payload, const char *tensor, struct evp_location *location,
                       struct evp_error *error);

/* The same of tensor number i, from 0 in the header's order: 1, or 0 when there are not so many. */
EVP_API int evp_locate_at(struct evp_payload *payload, size_t i, struct evp_location *location,
                          struct evp_error *error);

/* A text of the payload's metadata, as docs/formats/payload.md lists them: "model_name", "cache", which says how keys
 * were rotated and what they were computed in, and so on. Borrowed until evp_payload_close(); NULL: the payload does
 * not say. Of a part of a context these are the texts of the whole one. */
EVP_API const char *evp_payload_text(const struct evp_payload *payload, const char *name);

/* A part of a tensor: of its first dimension, which are the heads of most, and of its second, the rows of each. */
struct evp_range {
    const char *tensor;
    int64_t first, n;          /* heads; n 0: all from `first` on */
    int64_t first_row, n_rows; /* rows of each of them; n_rows 0: all from `first_row` on */
    int verify;                /* enum evp_verify */
    uint64_t reserved[4];      /* zero */
};

/* Reads a range into a buffer of `size` bytes, head by head with nothing between. A checksum is that of a whole tensor:
 * with EVP_VERIFY the first range of a tensor costs reading all of it, later ones only themselves. On Redis every range
 * is compared, and costs only itself. EVP_SMALL: the
 * buffer is smaller than the range. After a failure the buffer's content means nothing. */
EVP_API int evp_fetch_range(struct evp_payload *payload, const struct evp_range *range, void *buffer, size_t size,
                            struct evp_error *error);

/* ---- changing what is placed ----------------------------------------------------------------------------------
 *
 * Between two loads a process may put, move and remove payloads itself, as its live plan says (below). It must be the
 * user that owns the tiers' folders. Each call does what evp-load does for one payload: under the folders' locks, in
 * transactions, complete and flushed before readers see it. So a process that is killed at any point leaves every
 * payload whole or absent; what it left half is cleared away by the next change of the tier, and calling the function
 * again ends what it had begun. The next load of a manifest undoes what that does not say; evp_plan_save() writes one
 * that does.
 *
 * A context has one payload: evp_put() and evp_move() remove what else it has in any tier, after the new one is in its
 * place. Capacities are those of the manifest, its pools' and its namespaces', with spares of a load giving way; what
 * is replaced does not count against them.
 *
 * A server that is away matters to the call that needs its bytes: evp_put() to it, evp_move() to or from it. What
 * another call removes there is no longer found, and the next change or load that reaches the server deletes it.
 *
 * Beside writing its payload, a call writes the tier's index: 10 to 20 ms where 50,000 contexts are placed, and half a
 * second where a million are.
 *
 * The states are SQLite databases. The library is linked to libsqlite3, but uses it within these three functions alone:
 * no connection outlives a call, SQLite has no threads, and finding and fetching do not touch it. A process that was
 * forked while another thread was in one of them can go on reading, but not writing: EVP_IO.
 */

struct evp_put {
    const char *id;      /* of the context, as in the manifest */
    const char *tier;    /* the name of a tier of the manifest */
    const void *payload; /* (size) a payload's file, as evp-pack would write it */
    size_t size;
    uint64_t chunks;      /* 1: evp_find() also finds the beginning of the context, as with evp-load --chunks */
    uint64_t reserved[7]; /* zero */
};

/* Places a payload. Its container is checked whole: tokens and tensors against digest and checksums, the model against
 * the manifest's; which tensors its config has is not. It takes of the tier what its tensors take but for tokens and
 * positions, and evp_find() sees it when this returns. EVP_ARGUMENT: it is not what it says. EVP_FULL: the tier has too
 * few free bytes. EVP_BUSY: another process is at work there, for longer than the store's wait_s. */
EVP_API int evp_put(struct evp_store *store, const struct evp_put *put, struct evp_error *error);

/* Moves the payload of a context to a tier. EVP_UNKNOWN: it has none. */
EVP_API int evp_move(struct evp_store *store, const char *id, const char *tier, struct evp_error *error);

/* Removes the payload of a context from all tiers. EVP_UNKNOWN: it has none. */
EVP_API int evp_remove(struct evp_store *store, const char *id, struct evp_error *error);

/* ---- the store itself ----------------------------------------------------------------------------------------- */

/* Opens again what has changed on disk: the manifest, the indexes. 1: something had; 0: nothing, or another thread is
 * at it. Costs a stat() per tier when nothing has; call it as often as changes should be seen. After a failure the
 * store is what it was; that an index which could be read is damaged now is one. */
EVP_API int evp_refresh(struct evp_store *store, struct evp_error *error);

/* NULL is fine. No other call on the store may be at work. */
EVP_API void evp_close(struct evp_store *store);

/* The version of the library that is at work, "0.2.0"; EVP_VERSION is that of the header. */
EVP_API const char *evp_version(void);

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
 * be opened in turn. It has the plan as it was at one moment, after the call began. Events go on meanwhile and wait for
 * milliseconds at most. EVP_ARGUMENT: the plan has no contexts and none to evict; a manifest must have one. */
EVP_API int evp_plan_save(struct evp_plan *plan, const char *manifest, struct evp_error *error);

/* NULL is fine. No other call on the plan may be at work. */
EVP_API void evp_plan_close(struct evp_plan *plan);

#ifdef __cplusplus
}
#endif

#endif

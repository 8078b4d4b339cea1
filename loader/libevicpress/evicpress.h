/* evicpress.h - the serving system's side of EvicPress: which prefix of a prompt has its KV cache on a tier, and its bytes,
 * whole or in parts; and putting, moving and removing payloads. evicpress_plan.h says where a new context goes.
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
 * Compile with `pkg-config --cflags --libs evicpress`. Within one major version of the library, the functions, the order and
 * types of the members below, and the numbers of the codes do not change.
 */
#ifndef EVICPRESS_H
#define EVICPRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the library, the tools and their man pages; the Makefile reads it from here. */
#define EVICPRESS_VERSION       "0.3.0"
#define EVICPRESS_VERSION_MAJOR 0
#define EVICPRESS_VERSION_MINOR 3
#define EVICPRESS_VERSION_PATCH 0

#define EVICPRESS_API __attribute__((visibility("default")))

struct evp_store;

enum evp_code {
    EVICPRESS_OK = 0,
    EVICPRESS_MEMORY = -1,   /* out of memory */
    EVICPRESS_IO = -2,       /* a file cannot be opened, read or written, or a server not be reached */
    EVICPRESS_DAMAGED = -3,  /* a manifest, an index or a payload is not what it says it is */
    EVICPRESS_GONE = -4,     /* the prefix is no longer placed: call evp_find() again */
    EVICPRESS_SMALL = -5,    /* the buffer is smaller than the payload */
    EVICPRESS_ARGUMENT = -6, /* an argument is out of range */
    EVICPRESS_UNKNOWN = -7,  /* there is no such context, tier or tensor */
    EVICPRESS_EXISTS = -8,   /* the plan has that context already */
    EVICPRESS_FULL = -9,     /* a tier has too few free bytes */
    EVICPRESS_BUSY = -10     /* another process is changing a tier */
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
enum evp_verify { EVICPRESS_VERIFY = 0, EVICPRESS_TRUST = 1 };

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
EVICPRESS_API int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error);
EVICPRESS_API int evp_open_with(struct evp_store **store, const char *manifest, const struct evp_options *options,
                                struct evp_error *error);

/* What the store knows of a tier of its manifest. Nothing is ever found on a tier whose code is not EVICPRESS_OK. */
struct evp_tier {
    char name[32];
    int code; /* EVICPRESS_OK; EVICPRESS_GONE: its folder or disk is not there; EVICPRESS_UNKNOWN: the library does not serve its
                          kind; EVICPRESS_ARGUMENT: its path is relative, so it depends on the working directory;
                          EVICPRESS_DAMAGED: its index is; EVICPRESS_IO: the folder is somebody else's, or open to others */
    char text[256];    /* one sentence, without a full stop; "" with EVICPRESS_OK */
    uint64_t n_placed; /* contexts on it, those of other namespaces included */
    uint64_t reserved[8];
};

/* Tells of tier number i, from 0 in the manifest's order: 1 and *tier, or 0 when there are not so many. */
EVICPRESS_API int evp_get_tier(struct evp_store *store, size_t i, struct evp_tier *tier, struct evp_error *error);

/* Finds the longest prefix of tokens[0..n) that is on a tier: 1 and *prefix, or 0 when there is none. When it is on
 * several tiers, the fastest one counts. A context counts as a whole; where evp-load --chunks or evp_put() asked for
 * it, contexts of config "none" can also be found in part: their first 256 tokens, their first 512, and so on. Costs
 * one SHA-256 over the tokens, finalised at every 256th, and a look into an index where a context may end in the chunk
 * that follows. */
EVICPRESS_API int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
                           struct evp_error *error);

/* Reads the payload of a found prefix into a buffer of `size` bytes, writes prefix->size bytes of it, and verifies the
 * checksum, unless the store's options say otherwise. Of a part of a context that is a payload of its first n_tokens
 * alone, made of the context's, whose tensors are read whole to be verified. When evp-load has taken the payload away
 * meanwhile, looks for it in the other tiers; EVICPRESS_GONE: it is in none. After a failure the buffer's content means
 * nothing. */
EVICPRESS_API int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
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

/* On success the caller closes *payload; *payload is NULL otherwise. EVICPRESS_GONE as for evp_fetch(). */
EVICPRESS_API int evp_payload_open(struct evp_payload **payload, struct evp_store *store,
                                   const struct evp_prefix *prefix, struct evp_error *error);
EVICPRESS_API void evp_payload_close(struct evp_payload *payload); /* NULL is fine */

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

/* Tells where a tensor lies, or for NULL the whole payload. EVICPRESS_UNKNOWN: it has no such tensor. */
EVICPRESS_API int evp_locate(struct evp_payload *payload, const char *tensor, struct evp_location *location,
                             struct evp_error *error);

/* The same of tensor number i, from 0 in the header's order: 1, or 0 when there are not so many. */
EVICPRESS_API int evp_locate_at(struct evp_payload *payload, size_t i, struct evp_location *location,
                                struct evp_error *error);

/* A text of the payload's metadata, as docs/formats/payload.md lists them: "model_name", "cache", which says how keys
 * were rotated and what they were computed in, and so on. Borrowed until evp_payload_close(); NULL: the payload does
 * not say. Of a part of a context these are the texts of the whole one. */
EVICPRESS_API const char *evp_payload_text(const struct evp_payload *payload, const char *name);

/* A part of a tensor: of its first dimension, which are the heads of most, and of its second, the rows of each. */
struct evp_range {
    const char *tensor;
    int64_t first, n;          /* heads; n 0: all from `first` on */
    int64_t first_row, n_rows; /* rows of each of them; n_rows 0: all from `first_row` on */
    int verify;                /* enum evp_verify */
    uint64_t reserved[4];      /* zero */
};

/* Reads a range into a buffer of `size` bytes, head by head with nothing between. A checksum is that of a whole tensor:
 * with EVICPRESS_VERIFY the first range of a tensor costs reading all of it, later ones only themselves. On Redis every range
 * is compared, and costs only itself. EVICPRESS_SMALL: the
 * buffer is smaller than the range. After a failure the buffer's content means nothing. */
EVICPRESS_API int evp_fetch_range(struct evp_payload *payload, const struct evp_range *range, void *buffer, size_t size,
                                  struct evp_error *error);

/* ---- changing what is placed ----------------------------------------------------------------------------------
 *
 * Between two loads a process may put, move and remove payloads itself, as its live plan says (evicpress_plan.h). It must be the
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
 * forked while another thread was in one of them can go on reading, but not writing: EVICPRESS_IO.
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
 * positions, and evp_find() sees it when this returns. EVICPRESS_ARGUMENT: it is not what it says. EVICPRESS_FULL: the tier has too
 * few free bytes. EVICPRESS_BUSY: another process is at work there, for longer than the store's wait_s. */
EVICPRESS_API int evp_put(struct evp_store *store, const struct evp_put *put, struct evp_error *error);

/* Moves the payload of a context to a tier. EVICPRESS_UNKNOWN: it has none. */
EVICPRESS_API int evp_move(struct evp_store *store, const char *id, const char *tier, struct evp_error *error);

/* Removes the payload of a context from all tiers. EVICPRESS_UNKNOWN: it has none. */
EVICPRESS_API int evp_remove(struct evp_store *store, const char *id, struct evp_error *error);

/* ---- the store itself ----------------------------------------------------------------------------------------- */

/* Opens again what has changed on disk: the manifest, the indexes. 1: something had; 0: nothing, or another thread is
 * at it. Costs a stat() per tier when nothing has; call it as often as changes should be seen. After a failure the
 * store is what it was; that an index which could be read is damaged now is one. */
EVICPRESS_API int evp_refresh(struct evp_store *store, struct evp_error *error);

/* NULL is fine. No other call on the store may be at work. */
EVICPRESS_API void evp_close(struct evp_store *store);

/* The version of the library that is at work, "0.3.0"; EVICPRESS_VERSION is that of the header. */
EVICPRESS_API const char *evp_version(void);

/* What a code means, in words; never NULL. */
EVICPRESS_API const char *evp_message(int code);

#ifdef __cplusplus
}
#endif

#endif

/* evicpress.h - the serving system's side of EvicPress: finds the longest prefix of a prompt that has a KV cache on a
 * tier, fetches the cache whole or in ranges, and puts, moves and removes payloads. evicpress_plan.h decides where a
 * new context goes.
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
 *             use(payload, found.size, found.n_tokens);   // prefill continues at token found.n_tokens
 *         free(payload);
 *     }
 *     evp_close(store);
 *
 * A context is a token prefix. The manifest lists the tiers; their contents are read from the indexes that evp-load
 * keeps in the tiers' folders. The indexes are correct at every moment, even while evp-load runs: a manifest that is
 * not loaded yet places nothing, and an incomplete payload is never found. A folder is used only if it belongs to the
 * user, to root or to the owner of the manifest, and nobody else may write to it. A tier on Redis has its index in its
 * folder `state` and its payloads on the server; the store keeps connections open for later calls (docs/serving.md
 * lists the environment variables).
 *
 * A payload is a safetensors file: any reader of that format opens the fetched bytes. Its metadata has config,
 * model_digest, token_digest and n_tokens; its tensor `tokens` has the ids of the context. found.n_tokens is the
 * position of the next token, whatever the config kept.
 *
 * Threads may call all functions on the same store, plan or payload at once, except the function that closes it. They
 * must not be cancelled (pthread_cancel()) during a call. A process may fork at any moment, even while other threads
 * are in a call: stores, plans and payloads stay usable in parent and child, each with its own copy of a plan. The
 * library does not print, exit or change signals. Its only global state is a list of stores and plans, for fork(), and
 * evp-redis.so, which stays open once a tier has needed it. It leaves no threads behind: evp_plan_open() uses the
 * processors of its caller, at most eight threads including the caller's, blocks signals in the others and joins them.
 *
 * Functions return 0 or more on success and one of enum evp_code on failure. `error` may be NULL; otherwise a failure
 * sets its code and text.
 *
 * Compile with `pkg-config --cflags --libs evicpress`. Within one major version of the library, the functions, the
 * order and types of the members below, and the numbers of the codes do not change.
 */
#ifndef EVICPRESS_H
#define EVICPRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, the tools and their man pages; the Makefile reads it from here. */
#define EVICPRESS_VERSION       "0.3.0"
#define EVICPRESS_VERSION_MAJOR 0
#define EVICPRESS_VERSION_MINOR 3
#define EVICPRESS_VERSION_PATCH 0

#define EVICPRESS_API __attribute__((visibility("default")))

struct evp_store;

enum evp_code {
    EVICPRESS_OK = 0,
    EVICPRESS_MEMORY = -1,   /* out of memory */
    EVICPRESS_IO = -2,       /* cannot open, read or write a file, or reach a server */
    EVICPRESS_DAMAGED = -3,  /* a manifest, an index or a payload is malformed or damaged */
    EVICPRESS_GONE = -4,     /* the prefix is no longer placed: call evp_find() again; or the tier is not there */
    EVICPRESS_SMALL = -5,    /* the buffer is smaller than the payload */
    EVICPRESS_ARGUMENT = -6, /* an argument is out of range */
    EVICPRESS_UNKNOWN = -7,  /* no such context, tier or tensor */
    EVICPRESS_EXISTS = -8,   /* the plan has that context already */
    EVICPRESS_FULL = -9,     /* a tier has too few free bytes */
    EVICPRESS_BUSY = -10     /* another thread or process is changing a tier */
};

struct evp_error {
    int code;
    char text[512]; /* one sentence, without a full stop */
};

/* A placed prefix: a context, or a part of one (see evp_find). Plain data: copy it, keep it, give it to another
 * thread. */
struct evp_prefix {
    int64_t n_tokens;      /* tokens of the prompt that it covers */
    uint64_t size;         /* bytes that evp_fetch() writes */
    char config[128];      /* compression: "keydiff:drop=0.5"; "none" is the uncompressed cache */
    char tier[32];         /* name of its tier */
    char token_digest[72]; /* SHA-256 of the tokens, hex */
    char checksum[24];     /* XXH3-64 of the payload, hex; "" for a part of a context */
    char opaque[64];       /* private: where the payload is */
};

/* Whether fetched bytes are compared with their checksum. */
enum evp_verify { EVICPRESS_VERIFY = 0, EVICPRESS_TRUST = 1 };

/* Options of a store. Set `size` to sizeof(struct evp_options), so that later versions can add options; all others may
 * be zero. */
struct evp_options {
    size_t size;
    const char *name_space; /* as in evp-load --namespace; NULL: the manifest's model */
    double wait_s;          /* how long evp_put(), evp_move() and evp_remove() wait in all for other threads' and
                               processes' changes */
    int verify;             /* enum evp_verify, for evp_fetch() */
};

/* Opens the manifest at a path and the indexes of its tiers. On success the caller closes *store; otherwise *store is
 * NULL. Nothing is found on a tier that cannot be read; evp_get_tier() says why. */
EVICPRESS_API int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error);
EVICPRESS_API int evp_open_with(struct evp_store **store, const char *manifest, const struct evp_options *options,
                                struct evp_error *error);

/* The state of a tier of the manifest. With EVICPRESS_IO or EVICPRESS_DAMAGED the tier cannot be read now, and keeps
 * the contents that the store read last, if any. With any other code except EVICPRESS_OK nothing is found on it. */
struct evp_tier {
    char name[32];
    /* EVICPRESS_OK; EVICPRESS_GONE: the folder or disk is missing; EVICPRESS_UNKNOWN: the library does not serve this
     * kind; EVICPRESS_ARGUMENT: the path is relative, so it depends on the working directory; EVICPRESS_DAMAGED: the
     * index is damaged; EVICPRESS_IO: the folder cannot be read, belongs to another user, or others may write to it. */
    int code;
    char text[256];    /* one sentence, without a full stop; with EVICPRESS_OK "", or why evp_put(), evp_move() or
                          evp_remove(), called last, left the tier out */
    uint64_t n_placed; /* contexts on it, including those of other namespaces */
    uint64_t reserved[8];
};

/* Describes tier number i, from 0 in the manifest's order: 1 and *tier, or 0 after the last tier. */
EVICPRESS_API int evp_get_tier(struct evp_store *store, size_t i, struct evp_tier *tier, struct evp_error *error);

/* Finds the longest prefix of tokens[0..n) that is on a tier: 1 and *prefix, or 0 if there is none. Of several tiers,
 * the fastest counts. Normally only whole contexts are found. With evp-load --chunks or evp_put_args.chunks, the parts
 * of contexts of config "none" are found too: their first 256 tokens, their first 512, and so on. The cost is one
 * SHA-256 over the tokens, finalised at every 256th, and an index lookup wherever a context may end in the next
 * chunk. */
EVICPRESS_API int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
                           struct evp_error *error);

/* Lists the placed contexts of the store's namespace, each once, in its fastest tier: writes at most n of them, in the
 * order of the tiers, and returns how many there are. Parts of contexts are not listed. For engines that ask by hashes
 * of their own: the tensor `tokens` of the payload has a context's ids. */
EVICPRESS_API int evp_list(struct evp_store *store, struct evp_prefix *prefix, size_t n, struct evp_error *error);

/* Reads the payload of a found prefix into a buffer of `size` bytes: writes prefix->size bytes, and verifies the
 * checksum unless the store's options say otherwise. For a part of a context, writes a payload of its first n_tokens,
 * made from the context's payload; verifying it reads whole tensors. If evp-load has removed the payload meanwhile,
 * searches the other tiers; EVICPRESS_GONE: no tier has it. After a failure the buffer's content is undefined. */
EVICPRESS_API int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t size,
                            struct evp_error *error);

/* ---- ranges of a payload --------------------------------------------------------------------------------------
 *
 *     struct evp_payload *payload;
 *     struct evp_range keys = { .tensor = "layers.7.k", .first = 2, .n = 1 };   // only head 2
 *
 *     if (evp_payload_open(&payload, store, &found, &error))
 *         return complain(error.text);
 *     if (evp_fetch_range(payload, &keys, buffer, size, &error))
 *         complain(error.text);
 *     evp_payload_close(payload);
 *
 * An open payload stays readable when its prefix is moved or removed, unless it is on Redis, or another host removes it
 * from a network file system (EVICPRESS_GONE). Opening reads only the header of the file and, for a part of a context,
 * the part's tokens. docs/formats/payload.md lists the tensors. The tensors of a part are in the file of the whole
 * context: evp_locate() describes them as they are there, and evp_fetch_range() reads rows of the part alone, the first
 * n_tokens.
 */

struct evp_payload;

/* On success the caller closes *payload; otherwise *payload is NULL. EVICPRESS_GONE as for evp_fetch(). */
EVICPRESS_API int evp_payload_open(struct evp_payload **payload, struct evp_store *store,
                                   const struct evp_prefix *prefix, struct evp_error *error);
EVICPRESS_API void evp_payload_close(struct evp_payload *payload); /* NULL is fine */

/* Where bytes are, for callers that read them with mmap(), O_DIRECT (fcntl() sets it on a copy of the descriptor) or
 * GPUDirect Storage. The library does not verify such reads. */
struct evp_location {
    int fd;                /* open for reading until evp_payload_close(); dup() it to keep it longer; -1: the payload
                              is not in a file, so use evp_fetch_range() */
    int n_dims;            /* of a tensor */
    uint64_t offset, size; /* bytes; a tensor may begin at any offset */
    int64_t dim[8];        /* (n_dims) */
    char name[128];        /* "layers.7.k"; "" for the whole payload */
    char type[8];          /* "BF16", as in safetensors */
    char checksum[24];     /* XXH3-64 of a tensor's bytes, hex */
    uint64_t reserved[8];
};

/* Says where a tensor is, or, for NULL, the whole payload. EVICPRESS_UNKNOWN: no such tensor. */
EVICPRESS_API int evp_locate(struct evp_payload *payload, const char *tensor, struct evp_location *location,
                             struct evp_error *error);

/* The same for tensor number i, from 0 in the header's order: 1, or 0 after the last tensor. */
EVICPRESS_API int evp_locate_at(struct evp_payload *payload, size_t i, struct evp_location *location,
                                struct evp_error *error);

/* A text of the payload's metadata, by its name in docs/formats/payload.md: "model_name", "cache" (how keys are
 * rotated, and their data type when computed) and so on. Borrowed until evp_payload_close(); NULL: absent. A part of a
 * context has the texts of the whole context. */
EVICPRESS_API const char *evp_payload_text(const struct evp_payload *payload, const char *name);

/* A range of a tensor, by its first dimension (the heads, in most tensors) and its second (the rows of each head). */
struct evp_range {
    const char *tensor;
    int64_t first, n;          /* heads; n 0: all from `first` */
    int64_t first_row, n_rows; /* rows of each head; n_rows 0: all from `first_row` */
    int verify;                /* enum evp_verify */
    uint64_t reserved[4];      /* zero */
};

/* Reads a range into a buffer of `size` bytes, head after head without gaps. A checksum covers a head (a whole tensor
 * in payloads of releases before 0.3, and where heads keep different numbers of tokens), so with EVICPRESS_VERIFY the
 * first range of a head reads all of it, later ranges only themselves. On Redis every range is verified, and reads only
 * itself. EVICPRESS_SMALL: the buffer is smaller than the range. After a failure the buffer's content is undefined. */
EVICPRESS_API int evp_fetch_range(struct evp_payload *payload, const struct evp_range *range, void *buffer, size_t size,
                                  struct evp_error *error);

/* ---- rows as an engine keeps them -----------------------------------------------------------------------------
 *
 *     struct evp_shape shape;
 *     struct evp_rows rows = { .layer = 7, .side = EVICPRESS_KEYS, .first = 2, .n = 1, .type = EVICPRESS_F16 };
 *
 *     if (evp_payload_shape(payload, &shape, &error) || evp_fetch_rows(payload, &rows, buffer, size, &error))
 *         complain(error.text);
 *
 * evp_fetch_rows() decodes whatever the config of the payload is: rows kept in full, the codes of quantisers, chains
 * with them. Rows have the order of the kept tokens. Keys carry the rotation of their positions, so the next token has
 * position shape.n_tokens, however many rows there are.
 */

struct evp_shape {
    int64_t n_layers, n_heads, head_dim; /* key-value heads */
    int64_t n_tokens;                    /* of the found prefix */
    int64_t n_rows;                      /* of every head of every layer; -1: they differ, see evp_kept() */
    uint64_t reserved[8];
};

EVICPRESS_API int evp_payload_shape(struct evp_payload *payload, struct evp_shape *shape, struct evp_error *error);

/* Writes the numbers of rows of a layer's heads, rows[0..n). EVICPRESS_SMALL: the layer has more than n heads. */
EVICPRESS_API int evp_kept(struct evp_payload *payload, int64_t layer, int64_t *rows, size_t n,
                           struct evp_error *error);

enum evp_side { EVICPRESS_KEYS = 0, EVICPRESS_VALUES = 1 };

/* Number formats: bfloat16; IEEE 754 binary16 and binary32; OCP FP8 E4M3, in which a number beyond 448 becomes 448.
 * They round to nearest even. */
enum evp_type { EVICPRESS_BF16 = 0, EVICPRESS_F16 = 1, EVICPRESS_F32 = 2, EVICPRESS_E4M3 = 3 };

struct evp_rows {
    int64_t layer;
    int side;                  /* enum evp_side */
    int type;                  /* enum evp_type */
    int64_t first, n;          /* heads; n 0: all from `first` */
    int64_t first_row, n_rows; /* rows of each head; n_rows 0: all from `first_row`, if the heads have equally many */
    int verify;                /* enum evp_verify */
    int pairs; /* 1: of rotated columns of keys, i and i + dims / 2 become 2i and 2i + 1 (llama.cpp's Llama models) */
    /* Numbers from a head, row or column to the next; 0: dense, [heads][rows][head_dim]. */
    int64_t head_stride, row_stride, column_stride;
    uint64_t reserved[8]; /* zero */
};

/* Writes rows into a buffer of `size` bytes, aligned for its type. Verifying reads as evp_fetch_range(): whole heads,
 * and only those asked for. EVICPRESS_SMALL: the buffer ends before the last row. After a failure the buffer's content
 * is undefined. Numbers between the rows stay as they are. */
EVICPRESS_API int evp_fetch_rows(struct evp_payload *payload, const struct evp_rows *rows, void *buffer, size_t size,
                                 struct evp_error *error);

/* ---- a payload of what an engine has computed -----------------------------------------------------------------
 *
 *     const void *rows[2 * 30];                // keys and values of 30 layers: (3 heads, n rows, 64 columns)
 *     struct evp_encode encode = { .config = "kivi:bits=4", .model_digest = digest, .tokens = tokens, .n_tokens = n,
 *                                  .n_layers = 30, .n_heads = 3, .head_dim = 64, .type = EVICPRESS_F16, .rows = rows };
 *
 *     if (evp_encode_rows(&encode, &payload, &size, &error))
 *         complain(error.text);
 *
 * The same tensors, bit for bit, that evp-pack writes of the same rows, under `none` and the quantisers that need
 * nothing but them: kivi, int8, int4, fp8, nvfp4, turboquant, cachegen. The methods and their sources are described in
 * methods/NAME.c.
 */

struct evp_encode {
    const char *config;                  /* as a plan names it */
    const char *model_digest;            /* 64 hex digits */
    const char *model_name, *cache;      /* as evp_payload_text() gives them; NULL: the payload does not tell */
    const int32_t *tokens;               /* (n_tokens) */
    int64_t n_tokens;                    /* and rows of each head: none may have been dropped */
    int64_t n_layers, n_heads, head_dim; /* key-value heads; at most 1024 layers, 4096 heads, 1024 columns */
    int type;                            /* of the rows: EVICPRESS_BF16, EVICPRESS_F16 or EVICPRESS_F32 */
    const void *const *rows;             /* (n_layers, 2) of each layer the keys, rotated, then the values */
    int64_t head_stride, row_stride;     /* numbers from a head or row to the next; 0: dense, [heads][rows][head_dim] */
    uint64_t reserved[8];                /* zero */
};

/* Makes a payload of rows, on the calling thread: *payload of *size bytes, which the caller frees with free(). Rows are
 * rounded to bf16 first. Takes memory for the payload and for one layer's keys as f32. EVICPRESS_ARGUMENT: the config
 * needs more than the rows, or does not fit head_dim; on failure *payload is NULL. */
EVICPRESS_API int evp_encode_rows(const struct evp_encode *encode, void **payload, size_t *size,
                                  struct evp_error *error);

/* ---- changing what is placed ----------------------------------------------------------------------------------
 *
 * Between two loads a process may put, move and remove payloads itself, following its live plan (evicpress_plan.h). It
 * must run as the owner of the tiers' folders. Each call does what evp-load does for one payload: under the folders'
 * locks, in transactions, complete and flushed before readers see it. So a process killed at any point leaves every
 * payload whole or absent. The next change of the tier removes incomplete files; calling the function again completes
 * the change. The next load of a manifest undoes changes that are not in it; evp_plan_save() writes a manifest with
 * them.
 *
 * A context has one payload: evp_put() and evp_move() remove its other payloads from all tiers once the new one is
 * placed. The capacities of the manifest hold, with its pools and namespaces; replaced payloads do not count.
 *
 * A tier with "access":"read" is filled by another host. These calls never open it for writing: a payload cannot go to
 * it (EVICPRESS_ARGUMENT), and one that is there is neither moved nor removed.
 *
 * A call needs the tier that the payload goes to, with the other tiers of its pool, and the one that it comes from. A
 * tier whose folder or state cannot be opened, is damaged or belongs to another user fails only the calls that need it.
 * Other calls leave it out, and evp_get_tier() says why; what they would have removed there stays, and is found, until
 * the next change of the same context, or the next load, that reaches the tier. On an unreachable server payloads are
 * no longer found at once; the next change or load that reaches it deletes them.
 *
 * A call writes its payload and the tier's index. The index takes 10 to 20 ms with 50,000 placed contexts, and half a
 * second with a million.
 *
 * The states are SQLite databases. The library is linked to libsqlite3, but only these three functions use it: no
 * connection outlives a call, SQLite has no threads, and finding and fetching do not touch it. A process that was
 * forked while another thread was in one of these functions can read but not write: EVICPRESS_IO.
 */

struct evp_put_args {
    const char *id;      /* of the context, as in the manifest */
    const char *tier;    /* the name of a tier of the manifest */
    const void *payload; /* (size) a payload file, as from evp-pack */
    size_t size;
    uint64_t chunks;      /* 1: evp_find() also finds parts of the context, as with evp-load --chunks */
    uint64_t reserved[7]; /* zero */
};

/* Places a payload. Checks the whole container: tokens against their digest, tensors against their checksums, the model
 * against the manifest's; but not which tensors the config has. All tensors except tokens and positions count against
 * the tier's capacity. evp_find() finds the payload once this returns. EVICPRESS_ARGUMENT: the payload fails a check.
 * EVICPRESS_FULL: the tier has too few free bytes. EVICPRESS_BUSY: another thread or process kept changing one of the
 * tiers for longer than the store's wait_s. EVICPRESS_GONE: a tier of kind `file` is empty, as if its disk were not
 * mounted: evp-load makes it. */
EVICPRESS_API int evp_put(struct evp_store *store, const struct evp_put_args *put, struct evp_error *error);

/* Moves the payload of a context to a tier. EVICPRESS_UNKNOWN: the context has no payload. */
EVICPRESS_API int evp_move(struct evp_store *store, const char *id, const char *tier, struct evp_error *error);

/* Removes the payload of a context from all tiers. EVICPRESS_UNKNOWN: the context has no payload. */
EVICPRESS_API int evp_remove(struct evp_store *store, const char *id, struct evp_error *error);

/* ---- what a store has counted ---------------------------------------------------------------------------------- */

/* Counts since evp_open(), of the calls in this process: a forked child begins at 0. The first record is of all tiers
 * (tier "", config ""); the others are of one tier (config ""), or of one config on a tier. A member that does not
 * concern a record is 0 in it. Tiers are told apart by name, so a refresh with another manifest keeps their counts.
 *
 * A read is a call of evp_fetch(), from opening the payload to its last byte, or a piece of a payload without gaps that
 * evp_fetch_range() reads or verifies, or the header that evp_payload_open() reads. Comparing checksums is not part of
 * its time. Failed reads are not counted, nor reads through evp_locate(). */
struct evp_counters {
    char tier[32], config[128];
    uint64_t finds, tokens_asked; /* of all tiers: calls of evp_find(), and their tokens */
    uint64_t hits, tokens_hit;    /* prefixes found, and their tokens */
    uint64_t reads, read_bytes;
    double read_s, read_square_bytes, read_byte_s; /* sums over the reads: seconds, bytes^2, bytes * seconds */
    uint64_t puts, moves;                          /* of a tier: successful calls of evp_put() and evp_move() to it */
    uint64_t evictions;              /* of a tier: payloads that left it, replaced by evp_put(), or moved, or removed */
    uint64_t removes;                /* of all tiers: successful calls of evp_remove() */
    uint64_t n_placed, placed_bytes; /* of a tier, now: as in struct evp_tier, and the bytes of their payloads */
    uint64_t errors[16];             /* of all tiers: calls that failed, by code: errors[-EVICPRESS_IO] */
    uint64_t reserved[16];
};

/* Describes record number i, from 0: 1 and *stats, or 0 after the last record. */
EVICPRESS_API int evp_stats(struct evp_store *store, size_t i, struct evp_counters *stats, struct evp_error *error);

/* Writes the records as Prometheus text, for example for node_exporter's textfile collector, whole or not at all;
 * docs/formats/metrics.md lists the names. The label `process` is the name of the file without ".prom", so that several
 * processes can write into one folder. `evp-show --metrics` adds such files up, and `evp-tiers --from-metrics` takes
 * the bandwidth of the tiers from them. */
EVICPRESS_API int evp_write_metrics(struct evp_store *store, const char *path, struct evp_error *error);

/* ---- the store itself ----------------------------------------------------------------------------------------- */

/* Reopens the manifest and indexes that have changed on disk: 1, or 0 if none has or another thread is refreshing.
 * Without changes it costs a stat() per tier; call it as often as changes should be seen. A tier that can no longer be
 * read keeps its last contents, and evp_get_tier() says why; the other tiers are refreshed. After a failure the store
 * is unchanged. */
EVICPRESS_API int evp_refresh(struct evp_store *store, struct evp_error *error);

/* NULL is fine. No other call on the store may be running. */
EVICPRESS_API void evp_close(struct evp_store *store);

/* The version of the running library, "0.3.0"; EVICPRESS_VERSION is the header's. */
EVICPRESS_API const char *evp_version(void);

/* The meaning of a code in words; never NULL. */
EVICPRESS_API const char *evp_message(int code);

#ifdef __cplusplus
}
#endif

#endif

/* evp.h - the serving system's side of EvicPress: which prefix of a prompt has its KV cache on a tier, and its bytes.
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
 * A context is a token prefix. The manifest says which tiers there are; what lies in them is read from the indexes that
 * evp-load keeps in the tiers' folders, which are true at every moment, also while evp-load is at work. So a manifest
 * that was planned but not loaded places nothing, and one that is being replaced never shows half a payload.
 *
 * A payload is a safetensors file: any reader of that format opens the fetched bytes. Its metadata carries config,
 * model_digest, token_digest and n_tokens; found.n_tokens is the position of the next token, whatever the config kept.
 *
 * Every function may be called from several threads on one store, but evp_close(). Nothing here prints, exits, changes
 * a signal or keeps state outside the store. Functions return 0 or more on success and one of enum evp_code on failure;
 * `error` may be NULL, and gets code and sentence otherwise.
 *
 * Compile with `pkg-config --cflags --libs evp`. What may not change within one major version of the library: the
 * functions, the order and types of the members below, the numbers of the codes.
 */
#ifndef EVP_H
#define EVP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EVP_API __attribute__((visibility("default")))

struct evp_store;

enum evp_code {
    EVP_OK = 0,
    EVP_MEMORY = -1,  /* out of memory */
    EVP_IO = -2,      /* a file cannot be opened or read */
    EVP_DAMAGED = -3, /* a manifest, an index or a payload is not what it says it is */
    EVP_GONE = -4,    /* the prefix is no longer placed: evp_find() again */
    EVP_SMALL = -5    /* the buffer is smaller than the payload */
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
    char tier[32];         /* where it lies */
    char token_digest[72]; /* SHA-256 of the tokens, hex */
    char checksum[24];     /* XXH3-64 of the payload, hex */
    char reserved[64];     /* zero */
};

/* Opens the manifest at a path and the indexes of its tiers. On success the caller closes *store; *store is NULL
 * otherwise. A tier whose folder is missing holds nothing. */
EVP_API int evp_open(struct evp_store **store, const char *manifest, struct evp_error *error);

/* The longest prefix of tokens[0..n) that lies on a tier: 1 and *prefix, or 0 when there is none. Of several tiers the
 * fastest. Costs one SHA-256 over the tokens, and one finalisation per different length of placed contexts. */
EVP_API int evp_find(struct evp_store *store, const int32_t *tokens, size_t n, struct evp_prefix *prefix,
                     struct evp_error *error);

/* Reads the payload of a found prefix into a buffer of `room` bytes, of which prefix->size are written, and verifies
 * its checksum. When evp-load took it away meanwhile, looks for it in the other tiers; EVP_GONE: it is in none. The
 * buffer's content means nothing after a failure. */
EVP_API int evp_fetch(struct evp_store *store, const struct evp_prefix *prefix, void *buffer, size_t room,
                      struct evp_error *error);

/* Reads anew what changed on disk since: the manifest, the indexes. 1: something did, 0: nothing. Costs a stat() per
 * tier when nothing did; call it as often as news should be seen. After a failure the store is what it was. */
EVP_API int evp_refresh(struct evp_store *store, struct evp_error *error);

/* NULL is fine. No other call on the store may be at work. */
EVP_API void evp_close(struct evp_store *store);

/* What a code means, in words; never NULL. */
EVP_API const char *evp_message(int code);

#ifdef __cplusplus
}
#endif

#endif

/* put_world.h - a store of the installed library, for tests that change it: two folders, fast and slow, that hold two
 * payloads and many; and a tier that is none. Criterion runs each test in a process of its own, with its own variables.
 */
#ifndef EVP_PUT_WORLD_H
#define EVP_PUT_WORLD_H

#include "base/file.h"
#include "formats/tiers.h"
#include "loader/libevicpress/evicpress.h"

enum { G = 2, K = 4, T = 300, ROWS = 8, TENSOR = G * ROWS * K * 2, PAYLOAD_MAX = 1 << 16 };

extern const char model[];
extern char dir[], *manifest, *folder[2];
extern struct tier tier[3]; // as the manifest lists them after write_manifest()

void make_store(void);
void remove_store(void);
void write_manifest(void);

/* Waits up to 20 s for other processes. */
struct evp_store *open_store(void);

/* A payload of one layer: numbers made from `seed`, which its tokens begin with too. Returns its size. */
void make_ids(int32_t *ids, int seed);
size_t make_payload(char *to, const char *of_model, int seed);

int put(struct evp_store *store, const char *id, const char *to, int seed, struct evp_error *error);

/* The tier of what is placed of the context `seed`; "": nothing. find(): it must be placed. */
const char *where(struct evp_store *store, int seed);
struct evp_prefix find(struct evp_store *store, int seed);

#endif

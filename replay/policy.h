/* policy.h - what decides where contexts are while requests come.
 *
 * A new policy is one file with one struct policy_kind, listed in policy.c: `open` makes its state, from the text after
 * its name too; `find` tells what is held of a row that a request needs; `finish`, when the first token is out, notes
 * the use, may store what was computed, and says what is written to which tier. A request that was found is finished,
 * too. A policy with work for idle GPUs sets `idle` and `worked` (replay/simulate.h). Policies know the requests so
 * far, unless they say that they look ahead.
 */
#ifndef EVP_POLICY_H
#define EVP_POLICY_H

#include "replay/simulate.h"
#include "replay/world.h"

struct policy;

struct policy_kind {
    const char *name;
    const char *options; // how the text after the name is written, "[:raw|predicted]"; "": none
    int (*open)(struct policy *p, const char *options, struct err *err);
    struct held (*find)(const struct policy *p, int row);
    int (*finish)(struct policy *p, int request, struct sim_bytes *written, struct err *err); // NULL: stores nothing
    void (*close)(struct policy *p);                                                          // NULL: nothing to free
};

struct policy {
    const struct policy_kind *kind;
    const struct replay_world *world; // borrowed
    struct placement_input *in;       // the lane's; planning sets frequencies there
    void *state;
    struct manifest_load load;                // the lane's rate and GPUs, for a policy that plans with them
    const int64_t *at;                        // (n) borrowed: ns, when the requests arrive; read only with load.rate
    double promised_ttft_s, promised_quality; // of a plan; NAN: it has none, or it changes
    double (*idle)(struct policy *p);         // set by `open`; NULL: no work
    int (*worked)(struct policy *p, struct sim_bytes *written, struct err *err);
    int64_t profiled;   // contexts profiled again
    double profiling_s; // of a GPU, for that
};

/* The policies, the last one has no name. */
extern const struct policy_kind *const policy_kinds[];

/* The policy with whose name a text begins; NULL: none. */
const struct policy_kind *policy_find(const char *text);

/* name: a kind's, with its options. The lane's rate and GPUs are in in->load, and move to p->load. ERR_USAGE: no such
 * policy, or other options. */
int policy_open(struct policy *p, const char *name, const struct replay_world *w, struct placement_input *in,
                struct err *err) MUST_CHECK;
void policy_close(struct policy *p); // zeroed is fine

/* Sets at (C by row) to where the manifest in `path` has the rows, and their frequencies in p->in; NULL: nothing is
 * stored or used. ERR_FORMAT: a config or tier that the table or the tiers lack. */
int policy_begin(struct policy *p, const char *path, struct plan_placement *at, struct err *err) MUST_CHECK;

#endif

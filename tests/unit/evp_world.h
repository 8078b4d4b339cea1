/* evp_world.h - what the tests of evp_plan_* share: random contexts with their variants, and their manifest. */
#ifndef EVP_EVP_WORLD_H
#define EVP_EVP_WORLD_H

#include "base/rng.h"
#include "formats/manifest.h"
#include "loader/libevicpress/evicpress_plan.h"
#include "planner/plan.h"

enum { CONTEXTS = 32, VARIANTS = 5, TIERS = 3 };

extern const char *const world_config[VARIANTS];

struct world {
    struct tiers tiers;
    struct tier tier[TIERS];
    int64_t capacity[TIERS];
    double alpha, slo_ttft_s, slo_weight; // slo_weight 0: nothing is promised
    int there[CONTEXTS];
    char id[CONTEXTS][24];
    struct variant_info variant[CONTEXTS][VARIANTS];
    double frequency[CONTEXTS], prefill_s[CONTEXTS];
    double prefill_sd_s[CONTEXTS], question_sd_s[CONTEXTS]; // of those that the manifest has
    /* after the operations so far */
    struct plan_placement at[CONTEXTS];
    int64_t fill[TIERS];
};

/* Two empty files, made before each test and removed after it. */
extern char world_path[], world_other_path[];
void world_open_files(void);
void world_remove_files(void);

void world_draw_context(struct world *w, struct rng *r, int i);
void world_draw(struct world *w, struct rng *r, int n);

const char *world_digest(int i); // 64 hex digits, borrowed until the next call

/* Writes the manifest of a plan to world_path. */
void world_write(struct world *w, const struct plan *plan);

/* The candidates of context i, as planner/plan.h wants them. */
double world_candidates(const struct world *w, int i, int64_t *bytes, double *out);

/* Plans a world of n contexts and opens its manifest. */
struct evp_plan *world_begin(struct world *w, struct rng *r, int n);

int world_tier(const struct world *w, const char *name); // -1: recompute
int world_index(const struct evp_operation *op);         // of its context

/* Carries an operation out. It must begin where the context is, and leave no tier above its capacity. */
void world_follow(struct world *w, const struct evp_operation *op);

#endif

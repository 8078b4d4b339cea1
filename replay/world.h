/* world.h - what a replay knows of the requests: which rows of a table they need, bytes, times and answers.
 *
 * A row is a context, and a request needs one. Or, where requests begin alike and no table exists, a row is a run of
 * blocks (replay/runs.h), and a request needs those of its prompt, from the first on: a row is of use only with all
 * before it. What comes after them is computed for every request.
 *
 * Each request asks one of its context's test questions; the requests of a context take them in turn, beginning
 * anywhere. So quality is that of answers, not of a mean, and over whole turns their mean is the table's. With
 * `topics_change` the first half of a context's requests takes the first half of its questions in turn, the second half
 * the others. A context without test questions has the quality to plan with.
 */
#ifndef EVP_WORLD_H
#define EVP_WORLD_H

#include "placement/placement.h"

struct replay_world {
    const struct placement_input *in; // borrowed
    const int32_t *path;              // borrowed: the rows of request i are path[first[i]] to before path[first[i + 1]]
    const int32_t *first;             // (n + 1) borrowed
    int n, warm;                      // requests; those before `warm` are not counted
    int n_device; // the first tiers are memory of the GPUs: they hold KV as it is, and nothing is read or written
    bool topics_change;
    bool learns;       // plans learn rates from the two halves of the requests before `warm`
    int32_t *question; // (n) of the table; -1: its context has no test questions
    /* of runs of blocks; 0 and NULL: rows are contexts */
    int64_t block_tokens;
    const int64_t *tokens;  // (n) borrowed: of the whole prompts
    double token_s, pair_s; // to compute a token after n others: token_s + n * pair_s
    double kv_token_bytes;  // on the GPU
};

/* What is held of a row: bytes of the config in each tier, the beginning in the fastest. */
struct held {
    int config;
    int64_t at[TIER_MAX];
};

/* What a request finds. */
struct finding {
    double read[TIER_MAX];  // bytes
    double share[TIER_MAX]; // of the prompt's context, or of its tokens
    double shares;          // of all tiers and the memory of the GPUs together
    double in_memory;       // of these, there
    double gpu_s;           // before the first token
    double quality;         // of the answer
    double kept;            // bytes of KV on the GPU
};

/* Draws the questions; the caller has set the rest. */
int world_open(struct replay_world *w, uint64_t seed, struct err *err) MUST_CHECK;
void world_close(struct replay_world *w); // zeroed is fine

/* The rows of a request; returns how many. */
static inline int world_rows(const struct replay_world *w, int request, const int32_t **row)
{
    *row = w->path + w->first[request];
    return w->first[request + 1] - w->first[request];
}

/* All of a row at a placement. */
struct held world_all(const struct replay_world *w, int row, struct plan_placement at);

/* Adds the next row of a request. found: zeroed before the first one. Returns false where the row is not all there: the
 * rows after it are of no use. */
bool world_add(const struct replay_world *w, int request, int row, const struct held *held, struct finding *found);

/* The same for a row that an engine keeps whole in the memory of the GPUs, computed, or loaded in a config. */
void world_add_memory(const struct replay_world *w, int request, int row, int config, struct finding *found);

/* Sets GPU seconds and quality, after the last row. */
void world_finish(const struct replay_world *w, int request, struct finding *found);

/* What a request weighs among others: its tokens, or bytes of KV, which are proportional to them. */
double world_tokens(const struct replay_world *w, int request);

/* Sets the lane's frequencies to what a plan for the requests from one to before another counts, or learns. */
int world_expect(const struct replay_world *w, int first, int end, struct placement_input *in,
                 struct err *err) MUST_CHECK;

/* Sets (C by row) to how many requests from one to before another need it. */
void world_count(const struct replay_world *w, int first, int end, double *count);

#endif

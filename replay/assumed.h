/* assumed.h - what evp-replay needs of a table, where nobody has measured one: bytes and times follow from the shape of
 * a model and the data sheet of a GPU, qualities are given by hand, and requests and what they share come from logs
 * (replay/gain_log.h). A row is a run of blocks that prompts have together or not at all.
 */
#ifndef EVP_ASSUMED_H
#define EVP_ASSUMED_H

#include "replay/gain_model.h"
#include "profiler/table/table.h"
#include "replay/trace.h"
#include "replay/world.h"

enum { ASSUMED_CONFIGS = 32 };

/* "3.6:0.97,10:0.8": KV that is so many times smaller, and the quality of its answers. */
struct assumed_configs {
    double factor[ASSUMED_CONFIGS], quality[ASSUMED_CONFIGS];
    int n;
};
/* ERR_USAGE: not such a list; "": none. */
int assumed_parse(struct assumed_configs *c, const char *text, struct err *err) MUST_CHECK;

struct assumed {
    struct table table;
    struct trace trace; // names no contexts
    int64_t *token;     // (n) of the prompts
    int32_t *path;      // the rows of request i: path[first[i]] to before path[first[i + 1]]
    int32_t *first;     // (n + 1)
    int64_t block_tokens;
};

/* Takes the log's requests, which it sorts. */
int assumed_make(struct assumed *a, struct gain_log *log, const struct gain_model *m, const struct assumed_configs *c,
                 struct err *err) MUST_CHECK;

/* The fewest GPUs that are busy for at most 70 % of a span when nothing is stored; 1 if there is no span. */
int assumed_gpus(const struct assumed *a, const struct gain_model *m, double span_s);

/* The requests in a world of the table, which placement_input_take() has taken. */
struct replay_world assumed_world(const struct assumed *a, const struct gain_model *m,
                                  const struct placement_input *in);
void assumed_release(struct assumed *a); // zeroed is fine

#endif

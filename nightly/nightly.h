/* nightly.h - the configuration of evp-nightly: what a night reads, where its results are, and what it may cost.
 *
 *     {"evp":"nightly","version":1,"model":"Qwen/Qwen2.5-7B-Instruct","logs":["requests.log*"],"tiers":"tiers.json",
 *      "alpha":10,"budget_s":3600,"options":{"evp-import":["--min-tokens","512"]}}
 *
 * docs/formats/nightly.md says every field. A member that is not known is refused: a mistyped name would otherwise
 * change a night in silence.
 */
#ifndef EVP_NIGHTLY_H
#define EVP_NIGHTLY_H

#include "base/json.h"

/* Strings and lists are borrowed from `tree`. */
struct nightly {
    struct json *tree;
    const char *model, *tiers;
    const char *state;      // folder of the state; relative paths begin there
    const char *metrics;    // file for Prometheus' text format
    const char *configs;    // to try; NULL: the tools' default
    const char *name_space; // of the payloads; NULL: the model's digest
    double alpha, move_cost, pack_weight;
    double rate;         // requests per second, 0: nobody waits; below 0: as the logs say
    int64_t gpus;        // that serve
    double budget_s;     // of the profiling device in a night, 0: everything new is profiled
    double hours;        // after which the night ends, whatever is not done; 0: never
    double false_alarms; // probability that a night reports drift where there is none
    int64_t forget_days, keep;
    const struct json *logs, *served; // lists of patterns; served may be NULL
    const struct json *options;       // tool -> list of words; NULL: none
    bool verbose;                     // set by the caller: tools print all their messages
};

/* ERR_IO, ERR_FORMAT: the message names file and field. *n is zeroed on failure; nightly_release() frees. */
int nightly_read(struct nightly *n, const char *path, struct err *err) MUST_CHECK;
int nightly_parse(struct nightly *n, const char *text, size_t bytes, struct err *err) MUST_CHECK;
void nightly_release(struct nightly *n); // zeroed is fine

#endif

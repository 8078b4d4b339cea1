/* variants.h - the variants that a context could be stored as; rows of a manifest carry them for live plans (evp-plan
 * --online, and evp_plan_open() in loader/libevicpress/evicpress.h).
 *
 *     "prefill_s":1.5,"question_s":0.02,"min_quality":0.5,"pin":"ssd",
 *     "forms":{"config":[3,0],"bytes":[20000,100000],"quality":[0.6,1],"decompress_s":[0.001,0]}
 *
 * A config is given by its number in the header's list, to keep manifests fast to read: a million contexts have ten
 * million variants. decompress_s is absent if all are 0, min_quality if there is no floor, pin if there is no pin. With
 * a promised TTFT, "prefill_sd_s" and "question_sd_s" are the standard deviations of those times. "uses" are what a
 * live plan has counted on each of its time scales (planner/uses.h). A row without variants has none of these members.
 */
#ifndef EVP_VARIANTS_H
#define EVP_VARIANTS_H

#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "formats/tiers.h"

#include <stdint.h>

enum { VARIANTS_MAX = 127, VARIANTS_USES = 6 };

struct variant_info {
    const char *config;
    int64_t bytes;
    double quality, decompress_s; // quality 0 to 1; decompress_s NAN: not known
};

struct variants {
    const struct variant_info *at; // (n) evp-plan sorts them by rising bytes; may be NULL if n is 0
    int n;
    double prefill_s, question_s;       // to prefill the whole context, and then one question
    double min_quality;                 // floor: variants of lower quality are not used
    const char *pin;                    // the only tier allowed, "recompute": none; NULL: any
    double prefill_sd_s, question_sd_s; // standard deviations of those times; 0: not known, or no promised TTFT
    double uses[VARIANTS_USES];         // all 0: none were counted
};

/* Checks all fields; ERR_FORMAT names the wrong one. */
int variants_check(const struct variants *f, const struct tiers *tiers, struct err *err) MUST_CHECK;

/* The variant of a config, or NULL. */
const struct variant_info *variants_find(const struct variants *f, const char *config);

/* The configs in a header's list. */
struct variant_configs {
    const char **at; // (n)
    int n;
};

/* Reads an array of VARIANTS_USES numbers, 0 or more; absent: all 0. */
int variants_uses_from_json(double uses[VARIANTS_USES], const struct json *uses_array, struct err *err) MUST_CHECK;

/* Reads a row with a member "forms". variant: (VARIANTS_MAX) memory of the caller; *f points to it. Configs are
 * borrowed from the list. */
int variants_from_json(struct variants *f, struct variant_info *variant, const struct json *row,
                       const struct variant_configs *configs, struct err *err) MUST_CHECK;

/* configs: the header's list. ERR_FAIL: it lacks a config. */
int variants_to_json(const struct variants *f, const struct map *configs, struct json_out *w,
                     struct err *err) MUST_CHECK;

#endif

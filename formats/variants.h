/* variants.h - the variants that a context could be stored as: the rows of a manifest carry them for live plans
 * (evp-plan --online, and evp_plan_open() in loader/libevicpress/evicpress.h).
 *
 *     "prefill_s":1.5,"question_s":0.02,"min_quality":0.5,"pin":"ssd",
 *     "forms":{"config":[3,0],"bytes":[20000,100000],"quality":[0.6,1],"decompress_s":[0.001,0]}
 *
 * A config is its number in the header's list: a manifest of a million contexts has ten million variants, and reading
 * it takes the time of reading them. decompress_s is left out where all are 0, min_quality and pin where there is no
 * floor and no pin. Where a TTFT is promised, "prefill_sd_s" and "question_sd_s" say how far those times spread. A row
 * without variants has none of these members.
 */
#ifndef EVP_VARIANTS_H
#define EVP_VARIANTS_H

#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "formats/tiers.h"

#include <stdint.h>

enum { VARIANTS_MAX = 127 };

struct variant_info {
    const char *config;
    int64_t bytes;
    double quality, decompress_s; // quality 0 to 1; decompress_s NAN: not known
};

struct variants {
    const struct variant_info *at; // (n) by rising bytes when evp-plan wrote them; may be NULL when n is 0
    int n;
    double prefill_s, question_s;       // to compute the whole context, and then one question
    double min_quality;                 // no variant of lower quality is wanted
    const char *pin;                    // name of the one tier it may be on, "recompute": on none; NULL: on any
    double prefill_sd_s, question_sd_s; // standard deviations of those times; 0: not known, or nothing is promised
};

/* ERR_FORMAT with a sentence that names the field. */
int variants_check(const struct variants *f, const struct tiers *tiers, struct err *err) MUST_CHECK;

/* The variant of a config, or NULL. */
const struct variant_info *variants_find(const struct variants *f, const char *config);

/* The configs that a header lists. */
struct variant_configs {
    const char **at; // (n)
    int n;
};

/* Reads a row that has a member "forms". variant: (VARIANTS_MAX) the caller's; *f points to it. Texts are those of the
 * list. */
int variants_from_json(struct variants *f, struct variant_info *variant, const struct json *row,
                       const struct variant_configs *configs, struct err *err) MUST_CHECK;

/* configs: the header's list. ERR_FAIL: it lacks one. */
int variants_to_json(const struct variants *f, const struct map *configs, struct json_out *w,
                     struct err *err) MUST_CHECK;

#endif

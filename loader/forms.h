/* forms.h - what else a context could be stored as: what a manifest's rows carry for a plan that is kept while contexts
 * come and go (evp-plan --online, and evp_plan_open() in loader/evp.h).
 *
 *     "prefill_s":1.5,"question_s":0.02,"min_quality":0.5,"pin":"ssd",
 *     "forms":[{"config":"kivi:bits=2","bytes":20000,"quality":0.6,"decompress_s":0.001}, ...]
 *
 * min_quality and pin are left out where there is no floor and no pin. A row without forms has none of these members.
 */
#ifndef EVP_FORMS_H
#define EVP_FORMS_H

#include "base/err.h"
#include "base/json.h"
#include "loader/tiers.h"

#include <stdint.h>

enum { FORMS_MAX = 127 };

struct form {
    const char *config;
    int64_t bytes;
    double quality, decompress_s; // quality 0 to 1; decompress_s NAN: not known
};

struct forms {
    const struct form *at; // (n) by rising bytes when evp-plan wrote them; may be NULL when n is 0
    int n;
    double prefill_s, question_s; // to compute the whole context, and one question behind it
    double min_quality;           // no form of lower quality is wanted
    const char *pin;              // name of the one tier it may be on, "recompute": on none; NULL: on any
};

/* ERR_FORMAT with a sentence that names the field. */
int forms_check(const struct forms *f, const struct tiers *tiers, struct err *err) MUST_CHECK;

/* The form of a config, or NULL. */
const struct form *forms_find(const struct forms *f, const char *config);

/* Of a row that has a member "forms". form: (FORMS_MAX) the caller's, used by *f; texts are the row's. */
int forms_from_json(struct forms *f, struct form *form, const struct json *row, struct err *err) MUST_CHECK;
void forms_to_json(const struct forms *f, struct json_out *w);

#endif

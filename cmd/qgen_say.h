/* qgen_say.h - what evp-qgen says about requests and tokens, as messages and in the summary. */
#ifndef EVP_QGEN_SAY_H
#define EVP_QGEN_SAY_H

#include "qgen/api.h"

/* Of a run: totals of each endpoint, if there are several, and their sum. */
void qgen_say_usage(const struct api *api, const struct api_totals *totals);

#endif

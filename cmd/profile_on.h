/* profile_on.h - evp-profile --dry-run --on: the expected time on a GPU that is not here. */
#ifndef EVP_PROFILE_ON_H
#define EVP_PROFILE_ON_H

#include "profiler/run/grid.h"
#include "profiler/score/serving.h" // SERVING_GPUS, for its option

/* on: "GPU" or "GPU,NxTOKENS". model: as --model names it, or NULL. dtype: of BACKEND_DTYPES; the estimate is for bf16,
 * and says so where a GPU would compute in f32. ERR_USAGE: another text, or an unknown GPU. */
int profile_on(const struct grid *g, const char *model, const char *dtype, const char *on, struct err *err) MUST_CHECK;

#endif

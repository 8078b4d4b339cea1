/* profile_configs.h - the configs of a profile: of --configs or of a list of cells, as far as the model can take
 * them. */
#ifndef EVP_PROFILE_CONFIGS_H
#define EVP_PROFILE_CONFIGS_H

#include "base/err.h"
#include "engine/model/model.h"
#include "formats/cells.h"
#include "kernels/kv.h"
#include "methods/config.h"
#include "methods/kvzap.h"

struct profile_configs {
    struct config *at;
    int n;
    const char *list;  // the text of --configs, or NULL
    const char *cells; // the file of cells, or NULL
};

/* ERR_USAGE: a wrong config of --configs. */
int profile_configs_of_list(struct profile_configs *c, const char *list, struct err *err) MUST_CHECK;
/* In the order and spelling of the cells. ERR_FORMAT: a wrong config there is malformed input, not a wrong command
 * line. */
int profile_configs_of_cells(struct profile_configs *c, const struct cells *cells, const char *path,
                             struct err *err) MUST_CHECK;
void profile_configs_release(struct profile_configs *c); // zeroed is fine

/* The model must support every config; of a list with a name those that it does not support are left out. */
int profile_configs_check(struct profile_configs *c, const struct model_config *model, struct err *err) MUST_CHECK;

struct kv_shape profile_configs_shape(const struct model_config *model); // of payloads, whatever the backend's dtype

/* Begins to fit kvzap to the scores that these configs need. ERR_USAGE: none of them is kvzip, or there are devices. */
int profile_fit_new(struct kvzap_fit **fit, const struct profile_configs *c, const struct model *model,
                    const char *devices, struct err *err) MUST_CHECK;

/* Prints the lists with a name: a line "name<TAB>config" for each config. */
int profile_configs_print(struct err *err) MUST_CHECK;

#endif

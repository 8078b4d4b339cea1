/* method_plugin.h - methods from users' shared objects (methods/evp_method.h). */
#ifndef EVP_METHOD_PLUGIN_OPEN_H
#define EVP_METHOD_PLUGIN_OPEN_H

#include "base/err.h"
#include "methods/evp_method.h"
#include "methods/method.h"

/* Opens the objects of a list of paths, separated by commas, and adds their methods to the registry, for the life of
 * the process; before any config is read. NULL: none. ERR_USAGE says what is wrong with an object. Such an object runs
 * in this process with all of its rights: it is the user's own. */
int method_plugins_open(const char *list, struct err *err) MUST_CHECK;

/* The scores of one head, of a method with `plugin`. ERR_FAIL has its text. */
int method_plugin_score(const struct method *m, const struct evp_head *head, const double *value, float *score,
                        struct err *err) MUST_CHECK;

/* ERR_FAIL: the config's method is a plug-in's, and does not keep 1 .. n_tokens pairs of each head. */
int method_plugin_keep(const struct kv_full *full, const struct config *config, struct err *err) MUST_CHECK;

#endif

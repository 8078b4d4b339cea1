/* config.h - what a user writes to name a compressed form: `keydiff:drop=0.5`, `kivi:bits=2:group=64`,
 * `snapkv:drop=0.5+kivi:bits=4`, and lists of them with ranges: `keydiff:drop=0.1..0.9/0.2,kivi:bits=2`.
 *
 *     list   = config { "," config }
 *     config = "none" | stage [ "+" stage ]           a dropping method, a quantiser, or first one, then the other
 *     stage  = method { ":" name "=" value }
 *     value  = number, and in lists also from ".." to "/" step
 *
 * The canonical text has the parameters in the order of the method's table, shortest decimals, parameters at their
 * default left out (drop and bits have no default: they are always written).
 */
#ifndef EVP_CONFIG_H
#define EVP_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct method; // methods/method.h

enum { CONFIG_STAGES = 2, CONFIG_PARAMS = 4, CONFIG_NAME = 128 };

struct config_stage {
    const struct method *method;
    double value[CONFIG_PARAMS]; // in the order of method->param
};

struct config {
    struct config_stage stage[CONFIG_STAGES];
    int n_stages; // 0: none
    char name[CONFIG_NAME];
};

/* One config. ERR_USAGE with a sentence that names the piece which is wrong, and what would be right. */
int config_parse(struct config *out, const char *text, struct err *err) MUST_CHECK;

/* A comma-separated list, ranges `from..to/step` expanded (from + i*step rounded to 6 decimals, `to` included when it
 * is hit within 1e-9), `none` put first when it is not there, duplicates dropped. The caller frees *out. */
int config_list(struct config **out, int *n, const char *list, struct err *err) MUST_CHECK;

#endif

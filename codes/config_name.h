/* config_name.h - the form of a config's name: `none`, or `method:name=value+method:...`.
 *
 * For libevicpress, which is linked without methods/ and serves payloads of methods that it does not know, plug-ins'
 * included. methods/config.h reads a name with the bounds of every value.
 */
#ifndef EVP_CONFIG_NAME_H
#define EVP_CONFIG_NAME_H

#include "base/err.h"

#include <stdbool.h>

/* ERR_FORMAT unless name has that form. */
int config_name_check(const char *name, struct err *err) MUST_CHECK;

/* The text of a method's parameter: "4" for "bits" of "kivi" in "knorm:drop=0.5+kivi:bits=4", "" if it is not written.
 * false: the config does not have the method. */
enum { CONFIG_VALUE = 32 };
bool config_name_value(char value[CONFIG_VALUE], const char *name, const char *method, const char *param);

#endif

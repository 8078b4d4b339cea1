/* config_name.h - the form of a config's name: `none`, or `method:name=value+method:...`.
 *
 * For libevicpress, which is linked without methods/ and serves payloads of methods that it does not know, plug-ins'
 * included. methods/config.h reads a name with the bounds of every value.
 */
#ifndef EVP_CONFIG_NAME_H
#define EVP_CONFIG_NAME_H

#include "base/err.h"

/* ERR_FORMAT unless name has that form. */
int config_name_check(const char *name, struct err *err) MUST_CHECK;

#endif

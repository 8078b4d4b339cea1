/* config_name.h - checks the name of a config: `none`, or known methods with known parameters.
 *
 * For libevicpress, which is linked without methods/. There methods/config.h reads a name with the bounds of every
 * value; a unit test compares the two lists.
 */
#ifndef EVP_CONFIG_NAME_H
#define EVP_CONFIG_NAME_H

#include "base/err.h"

/* ERR_FORMAT names the unknown method or parameter. */
int config_name_check(const char *name, struct err *err) MUST_CHECK;

#endif

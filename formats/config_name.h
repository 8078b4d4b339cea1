/* config_name.h - is a text the name of a config that EvicPress has: `none`, or known methods with known parameters?
 *
 * For libevicpress, which is linked without methods/: what computes a config is there, and methods/config.h reads its name
 * with the bounds of every value. A unit test holds the two lists together.
 */
#ifndef EVP_CONFIG_NAME_H
#define EVP_CONFIG_NAME_H

#include "base/err.h"

/* ERR_FORMAT names the method or parameter that there is not. */
int config_name_check(const char *name, struct err *err) MUST_CHECK;

#endif

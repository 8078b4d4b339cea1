/* old_medium.c - a shared object in the place of a medium's, of an interface that nothing opens any more. */
#include "loader/store/medium.h"

const struct medium_plugin MEDIUM_SYMBOL = { { MEDIUM_ABI - 1, 0 }, NULL };

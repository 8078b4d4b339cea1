/* medium_drivers.h - the drivers that need no shared object, for medium.c alone. */
#ifndef EVP_MEDIUM_DRIVERS_H
#define EVP_MEDIUM_DRIVERS_H

#include "loader/store/medium.h"

extern const struct medium_driver medium_file; // files in the tier's folder

/* Makes an unreachable medium that fails with *why. */
int medium_open_absent(struct medium *m, const struct err *why, struct err *err) MUST_CHECK;

#endif

/* medium_drivers.h - the drivers, for the table in medium.c alone. */
#ifndef EVP_MEDIUM_DRIVERS_H
#define EVP_MEDIUM_DRIVERS_H

#include "loader/store/medium.h"

extern const struct medium_driver medium_file;  // files in the tier's folder
extern const struct medium_driver medium_redis; // values of a Redis server or cluster

#endif

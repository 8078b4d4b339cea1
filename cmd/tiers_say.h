/* tiers_say.h - warnings about tiers that are legal and hardly meant: for evp-tiers, which writes them, and
 * evp-plan. */
#ifndef EVP_TIERS_SAY_H
#define EVP_TIERS_SAY_H

#include "formats/tiers.h"

/* A capacity too small for any cache, and kinds that evp-load does not fill. */
void tiers_say_doubts(const struct tiers *tiers);

#endif

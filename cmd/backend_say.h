/* backend_say.h - the tools' messages about the backend. */
#ifndef EVP_BACKEND_SAY_H
#define EVP_BACKEND_SAY_H

#include "kernels/backend.h"

/* Once per run: why `auto` computes on the CPU, and how `auto` chose a dtype; nothing if neither was `auto`. A warning
 * if --threads asks for more than there are cores. */
void backend_say(const struct backend *be, int threads);

#endif

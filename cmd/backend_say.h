/* backend_say.h - what the tools say about the backend that computes. */
#ifndef EVP_BACKEND_SAY_H
#define EVP_BACKEND_SAY_H

#include "kernels/backend.h"

/* Once per run: why `auto` computes on the CPU, and how `auto` chose a dtype. Nothing where nothing was left to it. */
void backend_say(const struct backend *be);

#endif

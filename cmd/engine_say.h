/* engine_say.h - which of a manifest's placements serving engines can hold, and what an engine must be told. */
#ifndef EVP_ENGINE_SAY_H
#define EVP_ENGINE_SAY_H

#include "formats/manifest.h"

/* Warns of contexts on tiers that no serving engine can hold: it would compute them. */
void engine_say_unheld(const struct manifest *m);

/* Prints vLLM's option with the manifest's path and, unless NULL, the namespace. */
void engine_say_line(const struct manifest *m, const char *path, const char *name_space);

#endif

/* tiers_say.c - one line per tier in doubt. */
#include "cmd/tiers_say.h"

#include "base/log.h"
#include "base/parse.h"

void tiers_say_doubts(const struct tiers *tiers)
{
    enum { SMALLEST = 4096 }; // bytes; a token of a small model takes more than 20 KiB
    char text[TEXT_SHORT];

    for (int i = 0; i < tiers->n; i++) {
        const struct tier *t = &tiers->at[i];
        if (t->capacity > 0 && t->capacity < SMALLEST)
            log_warn("tier '%s' has a capacity of %s; sizes take K, M, G or T", t->name,
                     text_bytes(text, (double)t->capacity));
        if (!tier_is_folder(t) && !tier_is_remote(t))
            log_warn("tier '%s': evp-load does not fill tiers of kind %s; it leaves out the contexts planned there",
                     t->name, tier_kind_name(t->kind));
    }
}

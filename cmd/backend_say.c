/* backend_say.c - prints the backend's own sentences about the choice of `auto`. */
#include "cmd/backend_say.h"

#include "base/log.h"

void backend_say(const struct backend *be)
{
    if (be->instead) {
        log_info("computing on the CPU (-v says why)");
        log_debug("%s", be->instead);
    }
    if (be->note)
        log_info("%s", be->note);
}

/* backend_say.c - prints the backend's own sentences about the choice of `auto`. */
#include "cmd/backend_say.h"

#include "base/log.h"
#include "base/parallel.h"

void backend_say(const struct backend *be, int threads)
{
    if (be->instead) {
        log_info("computing on the CPU (-v says why)");
        log_debug("%s", be->instead);
    }
    if (threads > parallel_cores())
        log_warn("%d threads share %d cores, which is slower than one thread on each", threads, parallel_cores());
    if (be->note)
        log_info("%s", be->note);
}

/* backend_say.c - what `auto` chose and why, as lines of the log. The sentences are the backend's. Not for failures,
 * which a tool ends with.
 */
#include "cmd/backend_say.h"

#include "base/log.h"

void backend_say(const struct backend *be)
{
    if (be->instead)
        log_info("computing on the CPU: %s", be->instead);
    if (be->note)
        log_info("%s", be->note);
}

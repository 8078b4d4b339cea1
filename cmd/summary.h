/* summary.h - what a tool says at its end, as JSON in the file that --summary names: for cron and dashboards.
 *
 *     {"evp":"summary","version":1,"tool":"evp-pack","args":[...],"status":0,"seconds":12.5,"result":{...}}
 *
 * Each tool adds the members of "result" where it says them on stderr; docs/formats/summary.md lists them. A tool has
 * one summary, whose state is here. Without --summary nothing is written.
 */
#ifndef EVP_SUMMARY_H
#define EVP_SUMMARY_H

#include "base/err.h"
#include "base/json.h"
#include "base/opt.h"

#include <stdint.h>

/* After opt_parse(): the clock starts. */
void summary_begin(const struct tool *tool, int argc, char **argv);

/* Where members of "result" go. What is begun there must also be ended. */
struct json_out *summary_json(void);
void summary_int(const char *name, int64_t v);

/* The end of a tool whose work returned `code`: says that failure (err), writes the file and closes standard output.
 * Returns the exit status: the failure's; without one `status`, or 1 after status 0 when the file or standard output
 * could not be written, which is said. */
int summary_end(int code, int status, const struct err *err);

#endif

/* summary.h - the figures of a tool's last messages, as JSON in the file --summary: for cron and dashboards.
 *
 *     {"evp":"summary","version":1,"tool":"evp-pack","args":[...],"status":0,"seconds":12.5,"result":{...}}
 *
 * A tool adds the members of "result" where it prints them on stderr; docs/formats/summary.md lists them. A process has
 * one summary. Without --summary nothing is written.
 */
#ifndef EVP_SUMMARY_H
#define EVP_SUMMARY_H

#include "base/err.h"
#include "base/json.h"
#include "base/opt.h"

#include <stdint.h>

/* After opt_parse(): the clock starts. */
void summary_begin(const struct tool *tool, int argc, char **argv);

/* The writer of the members of "result". Objects and lists begun there must be ended. */
struct json_out *summary_json(void);
void summary_int(const char *name, int64_t v);

/* Ends a tool after its work returned `code`: prints the failure (err), writes the file and closes standard output.
 * Returns the exit status: the failure's; without a failure `status`, or 1 instead of 0, after a message, if the file
 * or standard output could not be written. */
int summary_end(int code, int status, const struct err *err);

#endif

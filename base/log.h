/* log.h - messages, progress and errors of a tool on stderr.
 *
 * Levels: an error ends the tool or loses a row; a warning is something the user should know but need not act on; info
 * is one line per stage of the work (the default); debug is for studying a run (-v). Lines are "evp-plan: text", with
 * "warning: " or "error: " where it applies; control characters become '?'.
 *
 * Progress is a bar with rate and time left on a terminal, and elsewhere a plain line every few seconds, after a minute
 * every minute. Messages and a running bar share the screen: a message clears the bar, which is drawn again below it.
 *
 * Only this file below cmd/ has global state (name, level, the running bar), because stderr is one stream. Calls from
 * several threads are serialised.
 */
#ifndef EVP_LOG_H
#define EVP_LOG_H

#include "base/err.h"

#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Called once, first thing in a tool. `name` must stay valid until the process ends. */
void log_open(const char *name, enum log_level level);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Of errors and warnings that differ only in their numbers and quoted names, five are printed, and at the end of the
 * tool, before the failure that ends it, the last one and how many there were between; with -v all. */
void log_end(void);

/* log_error(err->msg) and the exit status for it: `return log_failure(&err);` at the end of a tool. */
int log_failure(const struct err *err);

/* One bar at a time. `what` is borrowed until the end: "contexts", "tokens". total 0: unknown. */
void progress_begin(const char *what, int64_t total);
void progress_add(int64_t done);
void progress_left(double seconds); // remaining time from now; default: estimated from the rate so far
void progress_note(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); // a word after the bar: the current item
void progress_end(void);                   // the last state stays on screen as a plain line

#endif

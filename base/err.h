/* err.h - how functions report failures.
 *
 * A function that can fail returns `int`: 0, or a negative code from ERR_LIST (functions that return a pointer return
 * NULL). Its last parameter is `struct err *err`, owned by the caller, usually on its stack. The function that meets
 * the failure fills it with err_set(); callers that know more put it in front with err_wrap(). Nothing below cmd/
 * prints a failure or ends the process.
 *
 *     if (fd < 0)
 *         return err_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
 *
 * Messages: one sentence, lower case, no full stop, the failure first, the subject in single quotes.
 */
#ifndef EVP_ERR_H
#define EVP_ERR_H

/*    name        value  exit status */
#define ERR_LIST(X)                                                                                                    \
    X(ERR_FAIL, -1, 1) /* a bug, a capacity, anything without a better name */                                         \
    X(ERR_NOMEM, -2, 1)                                                                                                \
    X(ERR_IO, -3, 1)     /* cannot open, read, write */                                                                \
    X(ERR_USAGE, -4, 2)  /* the command line */                                                                        \
    X(ERR_FORMAT, -5, 3) /* an input is malformed, truncated, inconsistent, empty, or of another version */            \
    X(ERR_NET, -6, 4)    /* a remote service */                                                                        \
    X(ERR_DEVICE, -7, 5) /* no such backend, or it cannot compute this */                                              \
    X(ERR_LOST, -8, 1)   /* the device failed after it was opened: nothing more can be computed */                     \
    X(ERR_STALE, -9, 1)  /* another host has removed an open file of a network file system, or its server forgot it */

/* The exit statuses of every tool; --help and the man pages print them. */
#define EXIT_LIST(X)                                                                                                   \
    X(0, "success")                                                                                                    \
    X(1, "failed: file, memory, disk, capacity, a device at work, or rows left out")                                   \
    X(2, "the command line is wrong")                                                                                  \
    X(3, "an input is malformed, cut, inconsistent, empty or of another version")                                      \
    X(4, "a remote service is unreachable, refuses, or answers nonsense")                                              \
    X(5, "no such backend in this build or on this machine")

enum err_code {
#define X(name, value, status) name = (value),
    ERR_LIST(X)
#undef X
};

struct err {
    int code;
    char msg[512];
};

#define MUST_CHECK __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *err and returns `code`. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " in front of the message; returns err->code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "fmt" behind the message; returns err->code. */
int err_add(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_set(err, ERR_NOMEM, ...) with the usual message. */
int err_nomem(struct err *err);

/* The exit status for a code. */
int err_exit_status(int code);

#ifdef __cplusplus
}
#endif

#endif

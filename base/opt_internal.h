/* opt_internal.h - shared by opt.c, which reads a command line, and opt_paths.c, which checks the files it names. */
#ifndef EVP_OPT_INTERNAL_H
#define EVP_OPT_INTERNAL_H

#include "base/err.h"
#include "base/opt.h"

/* The operands of a command line, in order. */
struct opt_operands {
    char *const *at;
    int n;
};

/* Refuses, before any work is done, an output file that is a folder, or whose folder is not there (ERR_IO), and an
 * output that the same command reads or also writes (ERR_USAGE), under any name: devices and inodes are compared. */
/* Files that this process creates from now on are as open to its group as each operand at most, closed to others. */
void opt_keep_private(const struct opt_operands *operands);

int opt_check_paths(const struct tool *tool, const struct opt_operands *operands, struct err *err) MUST_CHECK;

#endif

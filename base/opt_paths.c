/* opt_paths.c - what operands and options name. opt_keep_private() sees to what texts of users become.
 *
 * opt_check_paths() refuses to overwrite what a command reads, and outputs whose folder does not exist. An option of
 * type OPT_OUT names an output; the text of any other option and every operand may name an input. A text that does not
 * name a file does no harm here.
 */
#include "base/opt_internal.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct written {
    const char *name, *path; // of the option; its value
    struct err *err;
};

static int refuse_same(const struct written *out, const char *path, const char *what)
{
    if (!path || !file_same(out->path, path))
        return 0;
    return err_set(out->err, ERR_USAGE, "'--%s=%s' is the file that %s names; give another name", out->name, out->path,
                   what);
}

static int compare_option(const struct written *out, const struct opt *o)
{
    char what[64];
    int code = 0;

    snprintf(what, sizeof(what), "--%s", o->name ? o->name : "");
    if (o->type == OPT_STR || o->type == OPT_JOIN || o->type == OPT_OUT)
        code = refuse_same(out, *(const char **)o->dst, what);
    const struct opt_list *list = o->type == OPT_LIST ? o->dst : NULL;
    for (int i = 0; list && i < list->n && !code; i++)
        code = refuse_same(out, list->at[i], what);
    return code;
}

/* The folder of an output must exist: a mistyped one is not made, and is found before the work. */
static int check_parent(const struct written *out, size_t n)
{
    while (n > 1 && out->path[n - 1] == '/')
        n--;
    while (n > 0 && out->path[n - 1] != '/')
        n--;
    char *parent = n > 1 ? strndup(out->path, n - 1) : NULL;
    int code = n > 1 && !parent ? err_nomem(out->err) : 0;
    if (parent && !file_is_dir(parent))
        code = err_set(out->err, ERR_IO, "'--%s=%s': there is no folder '%s'", out->name, out->path, parent);
    free(parent);
    return code;
}

static int check_output(const struct tool *t, const struct opt_operands *operands, const struct opt *output,
                        struct err *err)
{
    struct written out = { .name = output->name, .path = *(const char **)output->dst, .err = err };
    size_t n = out.path ? strlen(out.path) : 0;
    int code = 0;

    bool standard = n > 0 && strcmp(out.path, "-") == 0;
    if (standard && output->min == 0)
        return err_set(err, ERR_USAGE, "'--%s=-': this does not go to standard output; give the name of a file",
                       out.name);
    if (n == 0 || standard)
        return 0;
    if (check_parent(&out, n))
        return err->code;
    if (strcmp(output->arg, "FILE") == 0 && (out.path[n - 1] == '/' || file_is_dir(out.path)))
        return err_set(err, ERR_IO, "'--%s=%s' is a folder; give the name of a file", out.name, out.path);
    for (const struct opt *o = t->opts; o->type != OPT_END && !code; o++)
        if (o != output)
            code = compare_option(&out, o);
    for (int i = 0; i < operands->n && !code; i++)
        code = refuse_same(&out, operands->at[i], "an operand");
    return code ? code : refuse_same(&out, "-", "standard input");
}

int opt_check_paths(const struct tool *t, const struct opt_operands *operands, struct err *err)
{
    int code = 0;

    for (const struct opt *o = t->opts; o->type != OPT_END && !code; o++)
        if (o->type == OPT_OUT)
            code = check_output(t, operands, o, err);
    return code;
}

void opt_keep_private(const struct opt_operands *operands)
{
    mode_t closed = S_IWGRP | S_IRWXO;
    struct stat st;

    for (int i = 0; i < operands->n; i++)
        if (stat(operands->at[i], &st) == 0 && !(st.st_mode & S_IRGRP))
            closed |= S_IRWXG;
    umask(umask(closed) | closed);
}

/* table_read.c - a child process parses the HDF5 file into an image (table_image.c). The parent trusts the image no
 * more than the file: it makes arrays from it and checks their rules (table_check.c). If the child crashes or hangs,
 * the file is damaged, and the tool goes on. */
#include "base/file.h"
#include "base/magic.h"
#include "base/parallel.h"
#include "profiler/table/table_column.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- image -> table --------------------------------------------------------- */

/* Finds the n strings, which must fill `bytes` exactly. */
static int split_texts(const char **text, char *at, uint64_t bytes, size_t n, struct err *err)
{
    char *end = at + bytes;

    for (size_t i = 0; i < n; i++) {
        char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!nul)
            return err_set(err, ERR_FORMAT, "it has %zu strings of %zu", i, n);
        text[i] = at;
        at = nul + 1;
    }
    return at == end ? 0 : err_set(err, ERR_FORMAT, "it has more than %zu strings", n);
}

static int take_column(struct table *t, const struct column *c, struct image_span span, struct err *err)
{
    size_t n;

    if (span.at % IMAGE_ALIGN || span.at > t->map_bytes || span.bytes > t->map_bytes - span.at)
        return err_set(err, ERR_FORMAT, "'%s' is outside the file", c->path);
    if (!column_count(t, c, &n))
        return err_set(err, ERR_FORMAT, "'%s' is too large", c->path);
    char *at = (char *)t->map + span.at;
    if (c->type != COLUMN_TEXT) {
        column_set(t, c, at);
        return span.bytes == n * column_size(c->type) ? 0 : err_set(err, ERR_FORMAT, "'%s' is cut", c->path);
    }
    if (span.bytes < n)
        return err_set(err, ERR_FORMAT, "'%s' is cut", c->path);
    const char **text = malloc((n + 1) * sizeof(*text));
    if (!text)
        return err_nomem(err);
    column_set(t, c, text);
    return split_texts(text, at, span.bytes, n, err) ? err_wrap(err, "'%s'", c->path) : 0;
}

static int take_attributes(struct table *t, struct image_span span, struct err *err)
{
    const char *text[TABLE_ATTRIBUTES];

    if (span.at > t->map_bytes || span.bytes > t->map_bytes - span.at)
        return err_set(err, ERR_FORMAT, "its attributes are outside the file");
    if (split_texts(text, (char *)t->map + span.at, span.bytes, TABLE_ATTRIBUTES, err))
        return err_wrap(err, "attributes");
    for (int i = 0; i < TABLE_ATTRIBUTES; i++) {
        char *copy = strdup(text[i]);
        if (!copy)
            return err_nomem(err);
        attribute_set(t, &table_attributes[i], copy);
    }
    return 0;
}

/* Tests a column that is always read when the file has the section. */
static bool has_section(const struct table *t, enum column_section section)
{
    switch (section) {
    case SECTION_READ: return t->cell_bytes_read;
    case SECTION_CURVE: return t->curve_context;
    case SECTION_SCORES: return t->quality_train;
    case SECTION_BELIEF: return t->predicted_quality;
    case SECTION_TIERS: return t->tier_name;
    default: return true;
    }
}

/* A column must be there if the file has its section and it is wanted, and only then. */
static int check_presence(const struct table *t, const struct column *c, enum table_want want, struct err *err)
{
    bool should = has_section(t, c->section) && (want == TABLE_ALL || c->plan), is = column_get(t, c) != NULL;

    if (should == is)
        return 0;
    return err_set(err, ERR_FORMAT, should ? "it has no '%s'" : "it has '%s' without the datasets that belong to it",
                   c->path);
}

static int take_columns(struct table *t, const struct image_head *head, enum table_want want, struct err *err)
{
    if (take_attributes(t, head->attributes, err))
        return err->code;
    for (int i = 0; i < TABLE_COLUMNS; i++)
        if (head->column[i].at && take_column(t, &table_columns[i], head->column[i], err))
            return err->code;
    for (int i = 0; i < TABLE_COLUMNS; i++)
        if (check_presence(t, &table_columns[i], want, err))
            return err->code;
    return 0;
}

int table_from_image(struct table *t, void *map, size_t bytes, enum table_want want, struct err *err)
{
    struct image_head head = { 0 };
    int code = 0;

    *t = (struct table){ .map = map, .map_bytes = bytes };
    if (bytes >= sizeof(head))
        memcpy(&head, map, sizeof(head));
    head.msg[sizeof(head.msg) - 1] = '\0';
    if (head.code)
        code = err_set(err, head.code, "%s", head.msg);
    else if (memcmp(head.magic, IMAGE_MAGIC, sizeof(head.magic)) != 0)
        code = err_set(err, ERR_FORMAT, "it is damaged: libhdf5 crashed or hung on it");
    for (int i = 0; i < TABLE_AXES && !code; i++)
        if (head.n[i] < 0)
            code = err_set(err, ERR_FORMAT, "it has a negative length");
    t->n_contexts = head.n[AXIS_C];
    t->n_configs = head.n[AXIS_V];
    t->n_questions = head.n[AXIS_Q];
    t->n_tiers = head.n[AXIS_T];
    t->n_points = head.n[AXIS_P];
    t->max_new_tokens = head.max_new_tokens;
    t->temperature = head.temperature;
    if (!code)
        code = take_columns(t, &head, want, err);
    if (!code && !table_check_ids(t, &t->ids, err))
        return 0;
    table_release(t);
    return err->code;
}

/* ---- file -> image ----------------------------------------------------------- */

struct table_file {
    const char *path;
    uint64_t bytes;
    char digest[DIGEST_HEX];
};

/* The address space of this process now, in bytes; 0: not known. */
static rlim_t address_space(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (f && fscanf(f, "%lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Runs in the child: libhdf5 may print, crash or hang on a hostile file. The user sees none of it. */
static void run_child(int fd, const struct table_file *f, enum table_want want)
{
    const rlim_t bytes_per_s = 1 << 20; // a tenth of the slowest disk's rate: only an endless loop is slower
    struct rlimit cpu = { 10 + f->bytes / bytes_per_s, 20 + f->bytes / bytes_per_s }, core = { 0, 0 };
    const rlim_t used = address_space(), most = used + (1 << 30) + f->bytes * 64; // text shrinks to a 64th at most
    struct err err = { 0 };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    dup2(null, STDERR_FILENO);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    if (used > 0)
        setrlimit(RLIMIT_AS, &(struct rlimit){ most, most }); // a length in the file that is believed
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    if (table_image(fd, f->path, want, &err)) {
        struct image_head head = { .code = err.code };
        snprintf(head.msg, sizeof(head.msg), "%s", err.msg);
        if (pwrite(fd, &head, sizeof(head), 0) < 0)
            _exit(1);
    }
    _exit(0);
}

/* A table being read. */
struct reading {
    struct table *table;
    struct table_file *file;
    enum table_want want;
    int fd; // of the image
    pid_t child;
    struct err digest_err, image_err; // code 0: none
};

static int map_image(struct table *t, int fd, enum table_want want, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) || st.st_size == 0)
        return err_set(err, ERR_FORMAT, "it is damaged: libhdf5 crashed or hung on it");
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED)
        return err_nomem(err);
    return table_from_image(t, map, (size_t)st.st_size, want, err);
}

enum { TASK_DIGEST, TASK_IMAGE, TASKS };

static void digest_or_take(void *arg, int task)
{
    struct reading *r = arg;

    if (task == TASK_DIGEST) {
        r->digest_err.code = digest_file(r->file->path, r->file->digest, &r->digest_err);
        return;
    }
    while (waitpid(r->child, NULL, 0) < 0 && errno == EINTR)
        ;
    r->image_err.code =
        map_image(r->table, r->fd, r->want, &r->image_err); // the image shows whether the child succeeded
}

/* A thread digests the file while the child parses it and its image is checked: two cores work, and the file is read
 * from the disk once. */
static int read_file(struct reading *r, struct err *err)
{
    r->child = fork();
    if (r->child < 0)
        return err_set(err, ERR_NOMEM, "cannot start a process: %s", strerror(errno));
    if (r->child == 0)
        run_child(r->fd, r->file, r->want);
    parallel_do(TASKS, TASKS, digest_or_take, r);
    if (r->digest_err.code && !r->image_err.code)
        table_release(r->table);
    *err = r->digest_err.code ? r->digest_err : r->image_err;
    return err->code;
}

/* HDF5 looks for its signature at ever larger offsets; a table has it at the start. */
static int check_signature(struct table_file *f, struct err *err)
{
    static const char signature[8] = "\x89HDF\r\n\x1a\n";
    struct file_map map;

    if (file_map(&map, f->path, err))
        return err->code;
    bool is = map.n >= sizeof(signature) && memcmp(map.at, signature, sizeof(signature)) == 0;
    f->bytes = map.n;
    file_unmap(&map);
    if (is)
        return 0;
    err_set(err, ERR_FORMAT, "'%s' is not an HDF5 file", f->path);
    return magic_refuse(err, f->path, "a table");
}

int table_read(struct table *t, const char *path, enum table_want want, struct err *err)
{
    struct table_file f = { .path = path };

    *t = (struct table){ 0 };
    if (strcmp(path, "-") == 0)
        return err_set(err, ERR_USAGE, "a table cannot come from standard input: give the name of its file");
    if (check_signature(&f, err))
        return err->code;
    int fd = memfd_create("evp-table", MFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_IO, "cannot make a file in memory: %s", strerror(errno));
    struct reading r = { .table = t, .file = &f, .want = want, .fd = fd };
    int code = read_file(&r, err);
    if (!code)
        memcpy(t->digest, f.digest, sizeof(f.digest));
    close(fd);
    return code ? err_wrap(err, "'%s'", path) : 0;
}

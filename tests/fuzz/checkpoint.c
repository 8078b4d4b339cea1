/* checkpoint.c - any bytes as a finished FILE, then, after a NUL, as FILE.part: they are refused, or the next run
 * finds an answer that is added, and as many others as before. */
#include "base/file.h"
#include "qgen/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char folder[] = "/tmp/fuzz-checkpoint.XXXXXX", file[64], part[80];

static void remove_files(void)
{
    unlink(file);
    unlink(part);
    rmdir(folder);
}

static void make_folder(void)
{
    if (*file)
        return;
    if (!mkdtemp(folder))
        abort();
    snprintf(file, sizeof(file), "%s/q.jsonl", folder);
    snprintf(part, sizeof(part), "%s.part", file);
    atexit(remove_files);
}

/* A file that is overwritten would be flushed to its disk. */
static void put(const char *path, const uint8_t *bytes, size_t n)
{
    unlink(path);
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        abort();
}

static const struct checkpoint_key key = { .model = "m", .per_context = 2 };
static const char digest[] = "0000000000000000";
static const struct usage used = { 3, 4 };

static int count(const struct checkpoint *c)
{
    int n = 0;

    for (int i = 0; i < c->answers.n; i++) {
        const struct question_list *list = &c->answers.at[i].list;
        n += list->n;
        for (int k = 0; k < list->n; k++)
            if (strlen(list->at[k].text) < MIN_QUESTION || strlen(list->at[k].text) > MAX_QUESTION)
                abort();
    }
    return n;
}

/* Makes up an id that no answer has yet. */
static void new_id(const struct checkpoint *c, char id[16])
{
    char name[32];
    int n = 0;

    do {
        snprintf(id, 16, "new%d", n++);
        snprintf(name, sizeof(name), "%s\n1/3", id);
    } while (map_find(&c->parts, name, strlen(name)) >= 0);
}

static void add_one(struct checkpoint *c, const char *id)
{
    struct question_list list = { 0 };
    struct err err;

    if (question_list_add(&list, "Why?", 4, 0, &err) ||
        checkpoint_add(c, &(struct checkpoint_part){ id, digest, 1, 3 }, &list, &used, &err))
        abort();
    question_list_release(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *cut = n ? memchr(data, '\0', n) : NULL;
    size_t n_file = cut ? (size_t)(cut - data) : n;
    struct question_list list = { 0 };
    struct checkpoint c;
    struct err err;
    char id[16];

    make_folder();
    put(file, data, n_file);
    put(part, cut ? cut + 1 : data, cut ? n - n_file - 1 : 0);
    if (checkpoint_open(&c, file, &key, &err))
        return 0;
    int found = count(&c);
    new_id(&c, id);
    add_one(&c, id);
    checkpoint_close(&c);
    if (checkpoint_open(&c, file, &key, &err) || count(&c) != found + 1 ||
        !checkpoint_take(&c, &(struct checkpoint_part){ id, digest, 1, 3 }, &list) || c.taken < used.prompt)
        abort();
    question_list_release(&list);
    checkpoint_close(&c);
    return 0;
}

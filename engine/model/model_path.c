/* model_path.c - from a user's name for a model to its path: a path, the default model, or a repository of the Hugging
 * Face hub with a snapshot in huggingface_hub's cache on this machine. Nothing is fetched.
 *
 * The cache: HUB/models--ORG--NAME/refs/main holds the name of a commit, HUB/models--ORG--NAME/snapshots/COMMIT is a
 * model folder. HUB is $HF_HUB_CACHE, or $HF_HOME/hub, or ~/.cache/huggingface/hub ($XDG_CACHE_HOME for ~/.cache), as
 * in huggingface_hub.
 */
#include "base/buf.h"
#include "base/file.h"
#include "engine/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMIT_MAX = 64, REPOSITORY_MAX = 96 };
static const char folder_of_models[] = "models--";

/* ORG/NAME, as the hub allows it. */
static bool is_repository(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!slash || slash == name || !slash[1] || strchr(slash + 1, '/') || strlen(name) > REPOSITORY_MAX ||
        strstr(name, "--") || strstr(name, ".."))
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_./", *c))
            return false;
    return *name != '.' && slash[1] != '.';
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* The caller frees it; NULL: out of memory. */
static char *hub_folder(void)
{
    const char *hub = setting("HF_HUB_CACHE"), *home = setting("HF_HOME"), *cache = setting("XDG_CACHE_HOME");
    const char *user = setting("HOME");

    if (hub)
        return strdup(hub);
    if (home)
        return file_join(home, "hub");
    return cache ? file_join(cache, "huggingface/hub") : file_join(user ? user : ".", ".cache/huggingface/hub");
}

/* The commit in refs/main; only letters and digits, so that it cannot lead out of the folder. False: none. */
static bool read_commit(const char *repository, char commit[COMMIT_MAX + 1])
{
    char *path = file_join(repository, "refs/main");
    FILE *f = path ? fopen(path, "rb") : NULL;
    size_t n = f ? fread(commit, 1, COMMIT_MAX, f) : 0;

    if (f)
        fclose(f);
    free(path);
    while (n && isspace((unsigned char)commit[n - 1]))
        n--;
    commit[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)commit[i]))
            return false;
    return n > 0;
}

/* The snapshot of a repository in the cache; NULL: not there, or out of memory (*err says which). */
static char *find_snapshot(const char *hub, const char *name, struct err *err)
{
    const char *slash = strchr(name, '/');
    struct buf repository = { 0 }, snapshot = { 0 };
    char commit[COMMIT_MAX + 1], *found = NULL;

    buf_printf(&repository, "%s/%s%.*s--%s", hub, folder_of_models, (int)(slash - name), name, slash + 1);
    if (buf_failed(&repository)) {
        err_nomem(err);
    } else if (!file_is_dir(repository.at)) {
        err_set(
            err, ERR_IO,
            "cannot open model '%s': no such file or folder, and no snapshot of it in '%s' (HF_HUB_CACHE, HF_HOME); "
            "'hf download %s' fetches one",
            name, hub, name);
    } else if (!read_commit(repository.at, commit)) {
        err_set(err, ERR_IO, "cannot open model '%s': '%s/refs/main' names no snapshot", name, repository.at);
    } else {
        buf_printf(&snapshot, "%s/snapshots/%s", repository.at, commit);
        if (buf_failed(&snapshot))
            err_nomem(err);
        else if (!file_is_dir(snapshot.at))
            err_set(err, ERR_IO, "cannot open model '%s': its snapshot '%s' is not there", name, snapshot.at);
        else
            found = buf_take(&snapshot);
    }
    buf_release(&repository);
    buf_release(&snapshot);
    return found;
}

/* The caller frees it; NULL: out of memory. */
static char *default_path(void)
{
    char *dir = file_models_dir(), *path = dir ? file_join(dir, MODEL_DEFAULT ".Q4_1.gguf") : NULL;

    free(dir);
    return path;
}

char *model_path(const char *given, struct err *err)
{
    if (given && !file_exists(given) && is_repository(given)) {
        char *hub = hub_folder(), *found = hub ? find_snapshot(hub, given, err) : NULL;
        if (!hub)
            err_nomem(err);
        free(hub);
        return found;
    }
    char *path = given ? strdup(given) : default_path();
    if (!path) {
        err_nomem(err);
    } else if (!given && !file_exists(path)) {
        err_set(err, ERR_IO, "cannot open the default model '%s': `evp models` fetches it, or name yours with --model",
                path);
        free(path);
        return NULL;
    }
    return path;
}

void model_folder_name(const char *path, char *out, size_t size)
{
    const char *repository = strstr(path, folder_of_models);
    const char *end = repository ? strstr(repository, "/snapshots/") : NULL;
    const char *name = end ? strstr(repository + strlen(folder_of_models), "--") : NULL;

    if (name && name < end)
        snprintf(out, size, "%.*s", (int)(end - name - 2), name + 2);
    else
        snprintf(out, size, "%s", file_name(path));
}

char *model_vocabulary_path(const char *dir)
{
    static const char *const names[] = { "tokenizer.json", "tokenizer.model", "qwen.tiktoken" };
    char *first = file_join(dir, names[0]);

    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && first; i++) {
        char *path = file_join(dir, names[i]);
        if (!path || file_exists(path)) {
            free(first);
            return path;
        }
        free(path);
    }
    return first;
}

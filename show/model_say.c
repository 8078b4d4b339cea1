/* model_say.c - compares the model's name with those in the contexts of a log. */
#include "show/model_say.h"

#include "base/log.h"
#include "engine/model/model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_SIZE = 256 };

void model_say(const char *given)
{
    if (given)
        log_info("model: %s", given);
    else
        log_warn("model: " MODEL_DEFAULT
                 ", 135M parameters, for demonstrations: name the model you serve with --model");
}

void model_say_shape(const struct shape *shape)
{
    if (!shape->known)
        log_warn("architecture '%s' is not known: its KV cache is sized by the usual fields, for %d layers",
                 shape->arch, shape->n_layers);
    if (shape->kv_bits != 16)
        log_info("the quantisation of '%s' stores its KV cache in %g bits a number", shape->name, shape->kv_bits);
}

void model_say_date(const char *given, const struct tokenizer *t)
{
    if (t && tokenizer_writes_today(t))
        log_warn(
            "the chat template of '%s' writes today's date: what servers cache of its conversations ends at midnight; "
            "serve with a fixed date, in vLLM --default-chat-template-kwargs '{\"date_string\": \"26 Jul 2024\"}', "
            "and give the same here, --date '26 Jul 2024' (docs/models.md)",
            given ? given : MODEL_DEFAULT);
}

/* Did evp-import read logs to make these rows, or those that they come from? */
static bool comes_from_log(const struct json *header)
{
    const char *tool = json_text(json_get(header, "tool"));
    const struct json *child;

    for (child = json_first(json_get(header, "args")); child && tool && strcmp(tool, "evp-import") == 0;
         child = json_next(child))
        if (json_text(child) && strcmp(json_text(child), "--requests") == 0)
            return true;
    for (child = json_first(json_get(header, "from")); child; child = json_next(child))
        if (comes_from_log(child))
            return true;
    return false;
}

/* What is after the last '/', but for one at the end; of a snapshot of the Hugging Face cache, its repository. */
static void short_name(const char *given, char name[NAME_SIZE])
{
    char copy[PATH_MAX];
    size_t n = (size_t)snprintf(copy, sizeof(copy), "%s", given);

    n = n < sizeof(copy) ? n : sizeof(copy) - 1;
    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = '\0';
    model_folder_name(copy, name, NAME_SIZE);
}

static bool is_same(const char *a, const char *b)
{
    char name[2][NAME_SIZE];

    short_name(a, name[0]);
    short_name(b, name[1]);
    size_t n0 = strlen(name[0]), n1 = strlen(name[1]);
    return strncasecmp(name[0], name[1], n0 < n1 ? n0 : n1) == 0;
}

int model_say_for(const char *given, const struct contexts *contexts, const char *path, struct err *err)
{
    const char *other = NULL, *used = given ? given : MODEL_DEFAULT;
    bool logged = comes_from_log(contexts->header);

    for (int i = 0; i < contexts->n && logged && !other; i++)
        if (*contexts->at[i].dataset && !is_same(contexts->at[i].dataset, used))
            other = contexts->at[i].dataset;
    if (other && !given)
        return err_set(err, ERR_USAGE,
                       "'%s' comes from a log of model '%.200s', and without --model the default one, " MODEL_DEFAULT
                       ", would be used: add --model %.200s, or the file or folder of its weights",
                       path, other, other);
    model_say(given);
    if (other)
        log_warn("'%s' comes from a log of another model, '%.200s'", path, other);
    return 0;
}

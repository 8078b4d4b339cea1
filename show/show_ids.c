/* show_ids.c - the token ids of a context: every prompt about it begins with them; libevicpress finds it by them. */
#include "show/show.h"

#include "show/model_say.h"
#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"
#include "formats/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_ids(const struct tokenizer *t, const struct context *c, struct err *err)
{
    struct prompt_ids context;

    if (tokenizer_context_row(t, c, &context, err))
        return err_wrap(err, "context '%.200s'", c->id);
    for (int i = 0; i < context.ids.n; i++)
        printf("%s%" PRId32, i ? " " : "", context.ids.at[i]);
    putchar('\n');
    prompt_ids_release(&context);
    return 0;
}

int show_ids(const char *path, const struct show_prompt *prompt, struct err *err)
{
    struct contexts contexts;
    char *used = model_path(prompt->model, err);

    if (!used)
        return err->code;
    if (contexts_read(&contexts, path, err)) {
        free(used);
        return err->code;
    }
    struct tokenizer *t = NULL;
    if (!prompt->model)
        model_say(NULL);
    int row = map_find(&contexts.ids, prompt->id, strlen(prompt->id));
    if (row < 0)
        err_set(err, ERR_FORMAT, "'%s' has no context '%.200s'", path, prompt->id);
    struct model *m = row >= 0 ? model_open(used, err) : NULL;
    if (m)
        t = tokenizer_open_chat(m, prompt->chat, err);
    model_say_date(prompt->model, t);
    int code = t ? print_ids(t, &contexts.at[row], err) : err->code;
    tokenizer_free(t);
    model_close(m);
    contexts_release(&contexts);
    free(used);
    return code;
}

/* drift_model.c - does a model with its chat template still have the digests that a table was made with? */
#include "drift/drift.h"

#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"

#include <stdlib.h>

int drift_check_model(const struct table *t, const char *name, const char *chat_template, struct err *err)
{
    char text[TABLE_DIFFERENCE], digest[DIGEST_HEX], chat[DIGEST_HEX];
    struct table_made is = table_made(t), want = is;
    char *path = model_path(name, err);
    struct model *model = path ? model_open(path, err) : NULL;
    struct tokenizer *tokenizer =
        model && !model_digest(model, digest, err) ? tokenizer_open_chat(model, chat_template, err) : NULL;
    int code = tokenizer ? tokenizer_chat_digest(tokenizer, chat, err) : err->code;

    if (!code) {
        want.model = model_config(model)->name;
        want.model_digest = digest;
        want.chat_digest = chat;
        const char *how = table_made_difference(text, &is, &want);
        if (how)
            code = err_set(err, ERR_FORMAT, "the table was made with %s", how);
    }
    tokenizer_free(tokenizer);
    model_close(model);
    free(path);
    return code;
}

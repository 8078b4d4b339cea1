/* hf.c - a Hugging Face folder as a model. */
#include "engine/model_inside.h"

int hf_model_open(struct model *m, struct err *err)
{
    return err_set(err, ERR_FORMAT, "'%s' is a folder; only GGUF files are read yet", m->path);
}

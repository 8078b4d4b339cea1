/* tokenizer_hf.c - a tokenizer from a Hugging Face folder. */
#include "engine/tokenizer_inside.h"

int tokenizer_from_folder(struct tokenizer *t, const char *dir, int n_vocab, struct err *err)
{
    (void)t;
    (void)n_vocab;
    return err_set(err, ERR_FORMAT, "'%s' is a folder; only GGUF files are read yet", dir);
}

/* tiny_model.h - a Llama of two layers with random weights, in a folder of its own: more than the model files in
 * tests/data, for tests of what the engine computes. */
#ifndef EVP_TINY_MODEL_H
#define EVP_TINY_MODEL_H

enum { TINY_VOCAB = 271, TINY_MAX_TOKENS = 2048 };

/* Makes it under /tmp and gives its path. Grouped heads, an output matrix of its own, llama3 rotary scaling; the
 * tokenizer is that of tests/data/tiny. Fails the test if it cannot. */
void tiny_model_make(char path[64]);
void tiny_model_make_long(char path[64], int max_tokens); // one that allows more tokens
void tiny_model_make_wide(char path[64], int n_vocab);    // one with a larger vocabulary
void tiny_model_remove(const char *path);

#endif

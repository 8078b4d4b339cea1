/* shape.h - what a model keeps of a prompt and what computing it costs, from config.json or the keys of a GGUF file.
 *
 * A shape is read of models that the engine does not compute, too: no weights, number formats or rotary scalings are
 * looked at. Layers with full attention keep every token; those with a window or chunks the last tokens; linear, Mamba
 * and convolution layers a state of one size. Sources of the rules: vLLM's and SGLang's caches, and the defaults of
 * transformers' classes. Numbers have 2 bytes, unless the quantisation names another type for the cache; recurrent
 * states 4, unless config.json names a type. The keys of a sparse indexer have 8 bits, and a scale of 4 bytes for 128.
 *
 * To add a family: (1) its row in families[] of engine/model/shape_family.c (2) a line in
 * tests/golden/shapes/published.jsonl (3) its line in docs/models.md, which tests/cli/docs/models.sh compares with
 * `evp-show --models`. /
 */
#ifndef EVP_SHAPE_H
#define EVP_SHAPE_H

#include "engine/model/model.h"

enum { SHAPE_PARTS = 12, SHAPE_LAYERS = 1024, SHAPE_NAME = 64 };

/* Layers that are alike. */
struct shape_part {
    int layers;
    double bytes; // of an entry, in all these layers
    int window;   // entries of the last tokens are kept; 0: of all
    int every;    // tokens of an entry
};

struct shape {
    char name[SHAPE_NAME], arch[SHAPE_NAME];
    bool known; // the architecture has a row in the table of families; otherwise the usual fields say it all
    int n_layers, n_full, n_window, n_state;
    int window;       // tokens, of n_window layers
    bool unserved;    // no engine's adapter takes its payloads
    double kv_bits;   // of a number of the cache
    double token_max; // the longest context; 0: unknown
    struct shape_part part[SHAPE_PARTS];
    int n_parts;
    double state_bytes;       // of all layers with a state
    double parameters;        // all of them
    double active_parameters; // of a token, without embedding and output matrix
    double weights_bytes;     // in GPU memory
    double pair_flop;         // operations of attention per token and earlier token
    double window_flop;   // the same, with the last `window` tokens at most; of a sparse attention with its top tokens
    double window_tokens; // how many these are
};

/* ERR_FORMAT names the field that is missing, or that has an impossible value. */
int shape_read(const struct model *m, struct shape *s, struct err *err) MUST_CHECK;

/* Bytes of n tokens; they are shape_constant() + n * shape_per_token() once n exceeds all windows. */
double shape_bytes(const struct shape *s, double n);
double shape_per_token(const struct shape *s);
double shape_constant(const struct shape *s);

/* Operations for a token after so many others; without `before`, outside attention. */
double shape_token_flop(const struct shape *s);

/* The families, in the order of docs/models.md. */
struct shape_family {
    const char *title;
    const char *types;    // model_type of config.json, text_config's too; a blank after each
    const char *gguf;     // general.architecture, a blank after each
    const char *defaults; // "FIELD=NUMBER " for fields that config.json may lack; as in transformers' class
};
const struct shape_family *shape_family(int i);           // NULL: no more
bool shape_family_profiled(const struct shape_family *f); // the engine computes its models

#endif

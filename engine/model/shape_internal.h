/* shape_internal.h - for the files engine/model/shape*.c: fields of config.json, and the kinds of layers. */
#ifndef EVP_SHAPE_INTERNAL_H
#define EVP_SHAPE_INTERNAL_H

#include "engine/model/model_internal.h"
#include "engine/model/shape.h"

/* What a layer has. */
enum { LAYER_FULL = 1, LAYER_WINDOW = 2, LAYER_STATE = 4, LAYER_MLP = 8, LAYER_EXPERTS = 16 };
enum { LAYER_ATTENTION = LAYER_FULL | LAYER_WINDOW };

struct shape_fields {
    const struct json *whole;     // config.json, or what says the same of another container
    const struct json *at;        // its part about the text model
    const struct json *quantised; // quantization_config; NULL: none
    const char *defaults;         // of the family
    struct err bad;               // the first field with an impossible value; code 0: none
};

/* A synthetic model, or the keys of a GGUF file, as config.json; NULL: out of memory, or ERR_FORMAT. The caller frees
 * it. */
struct json *shape_config(const struct model *m, struct err *err);

/* Of several names, each with a blank after it, the first one that has a number; of a list the element of `layer`. Then
 * the family's default, then `absent`. true is 1. A negative, fractional or huge number is noted in f->bad. */
double shape_field(struct shape_fields *f, const char *names, int layer, double absent);

/* The first of the names whose value is not null; NULL: none. */
const struct json *shape_value(const struct shape_fields *f, const char *names);

/* The state of a layer, of `inner` channels with `state` numbers each, behind a convolution over `kernel` tokens of
 * these and of 2 * keys channels. False: no fields of one. */
struct shape_state {
    double kernel, inner, keys, state;
};
bool shape_state_of(struct shape_fields *f, struct shape_state *state);

/* Parameters, and what a token costs. */
void shape_cost(struct shape *s, struct shape_fields *f, const uint8_t *kind);

#endif

/* show_shape.c - the shape of a model that the engine does not compute, or whose weights are not here; the families. */
#include "engine/model/shape.h"
#include "show/show.h"

#include <stdio.h>
#include <string.h>

static void put_layers(struct sheet *s, const struct shape *shape)
{
    sheet_int(s, "n_layers", shape->n_layers);
    sheet_int(s, "layers_full", shape->n_full);
    sheet_int(s, "layers_window", shape->n_window);
    if (shape->n_window > 0)
        sheet_int(s, "sliding_window", shape->window);
    sheet_int(s, "layers_state", shape->n_state);
    if (shape->token_max > 0)
        sheet_int(s, "max_tokens", (int64_t)shape->token_max);
}

static void put_bytes(struct sheet *s, const struct shape *shape)
{
    static const double lengths[] = { 1, 1000, 32768, 131072 };
    static const char *const columns[] = { "tokens", "kv_bytes" };

    sheet_real(s, "kv_bits", shape->kv_bits, 1);
    sheet_bytes(s, "kv_per_token_bytes", (int64_t)shape_per_token(shape));
    sheet_bytes(s, "kv_constant_bytes", (int64_t)shape_constant(shape));
    sheet_bytes(s, "state_bytes", (int64_t)shape->state_bytes);
    sheet_int(s, "parameters", (int64_t)shape->parameters);
    sheet_int(s, "parameters_of_a_token", (int64_t)shape->active_parameters);
    sheet_bytes(s, "weights_bytes", (int64_t)shape->weights_bytes);
    sheet_table(s, "sizes", columns, 2);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        sheet_int(s, NULL, (int64_t)lengths[i]);
        sheet_bytes(s, NULL, (int64_t)shape_bytes(shape, lengths[i]));
    }
    sheet_table_end(s);
}

int show_shape(struct sheet *s, const char *path, struct err *err)
{
    struct err why = { 0 };
    struct shape shape;
    struct model *m = model_open_header(path, err), *computed = model_open_config(path, &why);
    int code = m ? shape_read(m, &shape, err) : err->code;

    if (!code) {
        sheet_text(s, "name", shape.name);
        sheet_text(s, "architecture", shape.arch);
        sheet_text(s, "sized_as", shape.known ? "its family" : "the usual fields say: its family is not known");
        put_layers(s, &shape);
        sheet_text(s, "profiled", computed ? "yes" : "no");
        if (!computed)
            sheet_text(s, "not_profiled", why.msg);
        put_bytes(s, &shape);
    }
    model_close(computed);
    model_close(m);
    return code;
}

/* Names without the blank at their end. */
static void put_names(struct sheet *s, const char *names)
{
    char text[512];
    size_t n = strlen(names);

    snprintf(text, sizeof(text), "%.*s", n ? (int)n - 1 : 1, n ? names : "-");
    sheet_text(s, NULL, text);
}

void show_models(struct sheet *s)
{
    static const char *const columns[] = { "family", "sized", "profiled", "packed", "served", "model_type", "gguf" };

    sheet_table(s, "models", columns, sizeof(columns) / sizeof(*columns));
    for (int i = 0; shape_family(i); i++) {
        const struct shape_family *f = shape_family(i);
        bool profiled = shape_family_profiled(f), served = profiled && !strstr(f->defaults, "unserved=1 ");
        sheet_text(s, NULL, f->title);
        sheet_text(s, NULL, "yes");
        sheet_text(s, NULL, profiled ? "yes" : "no");
        sheet_text(s, NULL, profiled ? "yes" : "no"); // what is profiled can be packed
        sheet_text(s, NULL, served ? "yes" : "no");
        put_names(s, f->types);
        put_names(s, f->gguf);
    }
    sheet_table_end(s);
}

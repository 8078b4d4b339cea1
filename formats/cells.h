/* cells.h - a list of cells: which questions are to be answered over which variants. JSON Lines (base/rows.h, kind
 * "cells"), written by evp-aim, run by evp-profile --cells; docs/formats/streams.md says every field.
 *
 *     {"context":"qasper/12","configs":["knorm:drop=0.5"],"questions":["qasper/12/q3","qasper/12/q7"]}
 *
 * A row is a rectangle: each of its questions over each of its configs, and over `none`, the reference. A header that
 * lists `configs` names all that rows may have; evp-profile then writes down tokens and sizes of all contexts.
 */
#ifndef EVP_CELLS_H
#define EVP_CELLS_H

#include "base/err.h"
#include "base/map.h"
#include "formats/context.h"

#include <stdbool.h>

struct cells {
    struct map configs;  // names as they are written, the header's, then by first use; the first is "none"
    struct map contexts; // ids
    struct map wanted;   // private: (question, config) in numbers
    struct json *header; // of the stream; NULL
    bool rows;           // its header lists all configs: every context becomes a row of the profile
};

/* Reads a list for these contexts and questions, both borrowed for the call alone. ERR_FORMAT with line and field: an
 * unknown context, a question that is unknown, of another context, or not of the split that the header names; a
 * config that the header does not list; an empty rectangle; a cell that came before. Config names are not parsed. No
 * rows at all are fine. */
int cells_read(struct cells *c, const char *path, const struct contexts *contexts, const struct questions *questions,
               struct err *err) MUST_CHECK;
int cells_read_bytes(struct cells *c, const struct rows_bytes *bytes, const struct contexts *contexts,
                     const struct questions *questions, struct err *err) MUST_CHECK;
void cells_release(struct cells *c); // zeroed is fine

/* Is question number `question` wanted over config number `config` of c->configs? */
bool cells_want(const struct cells *c, int question, int config);

/* The names of the configs as a list for config_list(), owned by the caller; NULL without memory. */
char *cells_configs(const struct cells *c);

#endif

/* cells.h - a list of cells: which questions to answer over which variants. JSON Lines (base/rows.h, kind "cells"),
 * written by evp-drift, run by evp-profile --cells; docs/formats/streams.md says every field.
 *
 *     {"context":"qasper/12","configs":["knorm:drop=0.5"],"questions":["qasper/12/q3","qasper/12/q7"]}
 *
 * A row is a rectangle: each of its questions over each of its configs, and over `none`, the reference.
 */
#ifndef EVP_CELLS_H
#define EVP_CELLS_H

#include "base/err.h"
#include "base/map.h"
#include "formats/context.h"

#include <stdbool.h>

struct cells {
    struct map configs;  // names as written: "none", then the rows' in order of first use
    struct map contexts; // ids
    struct map wanted;   // private: (question, config) in numbers
    struct json *header; // of the stream, or NULL
    /* What cells_chosen() left out: contexts that are placed, but unknown; compressed contexts without test
     * questions. */
    int n_unknown, n_untested;
};

/* Reads a list for these contexts and questions, both borrowed for the call alone. Config names are not parsed. A list
 * without rows is fine. ERR_FORMAT names line and field: an unknown context; a question that is unknown, about another
 * context; an empty rectangle; a repeated cell. */
int cells_read(struct cells *c, const char *path, const struct contexts *contexts, const struct questions *questions,
               struct err *err) MUST_CHECK;
int cells_read_bytes(struct cells *c, const struct rows_bytes *bytes, const struct contexts *contexts,
                     const struct questions *questions, struct err *err) MUST_CHECK;
/* The test questions of each context that the plan in `path`, a manifest, keeps compressed, over the variant that it
 * chose. Answers to test questions never decide anything, so other variants would only cost time; and the answers of a
 * context that is not compressed are the reference's. */
int cells_chosen(struct cells *c, const char *path, const struct contexts *contexts, const struct questions *questions,
                 struct err *err) MUST_CHECK;
void cells_release(struct cells *c); // zeroed is fine

/* Is question number `question` wanted over config number `config` of c->configs? */
bool cells_want(const struct cells *c, int question, int config);

/* The names of the configs as a list for config_list(), owned by the caller; NULL without memory. */
char *cells_configs(const struct cells *c);

#endif

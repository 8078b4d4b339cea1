/* config.h - the text syntax of configs: `keydiff:drop=0.5`, `kivi:bits=2:group=64`,
 * `adakv+snapkv:drop=0.5+kivi:bits=4`, and of lists with ranges: `keydiff:drop=0.1..0.9/0.2,kivi:bits=2`.
 *
 *     list   = config { "," config }             default, papers and all stand for lists
 *     config = "none" | stage { "+" stage }      a budget, a dropping method, a merging method, a quantiser, in this
 *                                                order; a budget or a merging method needs a dropping method
 *     stage  = method { ":" name "=" value | ":" number }     a number alone is the parameter without a default
 *     value  = number, number%, or word, and in lists also from ".." to, or from ".." to "/" step
 *
 * Method names are read in any case. `drop` is the share of KV pairs removed; kvpress and the papers call it
 * compression ratio, and kvpress' name `compression_ratio` is read too. So SnapKV:0.5 is snapkv:drop=0.5. The canonical
 * text has the parameters in the order of the method's table, in shortest decimals, without parameters at their default
 * (drop and bits have no default and are always written).
 */
#ifndef EVP_CONFIG_H
#define EVP_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct method; // methods/method.h

enum method_kind { METHOD_BUDGET, METHOD_DROP, METHOD_MERGE, METHOD_QUANTISE, METHOD_KINDS }; // in the order of a chain
enum { CONFIG_PARAMS = 8, CONFIG_NAME = 128 };

/* Lists with a name, which stands for them in a list. CONFIG_USUAL: what evp-profile tries unless
 * others are given. The last has name NULL. */
#define CONFIG_USUAL "default"
struct config_named {
    const char *name, *list;
};
extern const struct config_named config_named[];
bool config_is_named(const char *list); // is it the name of such a list?

struct config_stage {
    const struct method *method;
    double value[CONFIG_PARAMS]; // in the order of method->param; a word's index
};

/* A chain, resolved: config_parse() finds what follows from its methods, and nobody asks again. */
struct config {
    struct config_stage stage[METHOD_KINDS]; // method NULL: the chain has none of this kind; `none` has no stage
    const struct method_budget *budget;      // of stage[METHOD_BUDGET], and so on; NULL: none
    const struct method_drop *drop;
    const struct method_merge *merge;
    const struct method_pack *pack; // of stage[packer]: a quantiser, or a dropping method that packs
    enum method_kind packer;
    bool knows_rows; // false: how many pairs are kept, and of impress read, depends on the scores
    bool ragged;     // the heads of a layer may differ in length; their lengths then follow from the scores
    char name[CONFIG_NAME];
};

/* Reads one config. ERR_USAGE says what is wrong and what would be right. */
int config_parse(struct config *out, const char *text, struct err *err) MUST_CHECK;

/* Reads a comma-separated list of at most 4096 configs. Ranges are expanded (base/parse.h), `none` is put first, and
 * duplicates are dropped. The caller frees *out. */
int config_list(struct config **out, int *n, const char *list, struct err *err) MUST_CHECK;

#endif

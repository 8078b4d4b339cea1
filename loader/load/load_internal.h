/* load_internal.h - what the files of loader/load/ share; see the README there for their order. */
#ifndef EVP_LOAD_INTERNAL_H
#define EVP_LOAD_INTERNAL_H

#include "loader/load/load.h"

/* The store in the folder of a receipt's tier, or -1. */
int load_store_of(const struct load *l, const struct tier *tier);

/* The receipt of the last load; empty when there is none. ERR_FORMAT: it contradicts the manifest it is of. */
int load_read_receipt(const struct load *l, struct receipt *r, struct err *err) MUST_CHECK;

/* Everything of load_open() after the manifest was read; does not release *l. */
int load_prepare(struct load *l, struct err *err) MUST_CHECK;

/* Fills *goals: the id of a goal -> its number. */
int load_map_goals(const struct load *l, struct map *goals, struct err *err) MUST_CHECK;

/* Is there a file of this name and size in the payload folder? */
bool load_is_packed(const struct load *l, const char *payload, int64_t size);

/* The index entry of l->file[file]. */
struct entry *load_entry(const struct load *l, int file);

/* Sets the goals' operations and `from`, l->evicted and l->n_operations. */
int load_set_operations(struct load *l, struct err *err) MUST_CHECK;

/* Sets l->nothing_to_do. */
int load_set_nothing_to_do(struct load *l, const struct steps_file *file, struct err *err) MUST_CHECK;

/* ERR_FAIL: a disk has too few free bytes for the steps. */
int load_check_disks(const struct load *l, struct err *err) MUST_CHECK;

/* Does a receipt place exactly what is placed in the tiers? */
int load_matches_receipt(const struct load *l, const struct receipt *r, bool *matches, struct err *err) MUST_CHECK;

/* Tells the caller of load_open() or load_run() how far a phase is. */
void load_report(const struct load *l, enum load_phase phase, int done, int total);

#endif

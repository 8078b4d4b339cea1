/* load_internal.h - what the files of loader/load*.c share. Not for others. */
#ifndef EVP_LOAD_INTERNAL_H
#define EVP_LOAD_INTERNAL_H

#include "loader/load/load.h"

/* The store in the folder of a receipt's tier, or -1. */
int load_store_of(const struct load *l, const struct tier *tier);

/* The receipt of the last load; empty when there is none. ERR_FORMAT: it contradicts the manifest it is of. */
int load_read_receipt(const struct load *l, struct receipt *r, struct err *err) MUST_CHECK;

/* Everything of load_open() behind the manifest; does not release *l. */
int load_prepare(struct load *l, struct err *err) MUST_CHECK;

/* id of a goal -> its number */
int load_map_goals(const struct load *l, struct map *goals, struct err *err) MUST_CHECK;

/* Is there a file of that name and size in the payload folder? */
bool load_is_packed(const struct load *l, const char *payload, int64_t size);

struct entry *load_entry(const struct load *l, int file);

/* Sets operations, where goals were, and the counts. */
int load_name_operations(struct load *l, struct err *err) MUST_CHECK;

/* Sets l->nothing_to_do. */
int load_ask_nothing_to_do(struct load *l, const struct steps_file *file, struct err *err) MUST_CHECK;

/* ERR_FAIL when a disk lacks the room for the steps. */
int load_check_disks(const struct load *l, struct err *err) MUST_CHECK;

/* Does a receipt place exactly what lies live in the tiers? */
int load_is_told_by(const struct load *l, const struct receipt *r, bool *told, struct err *err) MUST_CHECK;

#endif

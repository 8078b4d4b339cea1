/* manifest_internal.h - how rows come into a manifest, for the files that make them: checked and copied in any thread,
 * taken over in one, in their order. */
#ifndef EVP_MANIFEST_INTERNAL_H
#define EVP_MANIFEST_INTERNAL_H

#include "loader/formats/manifest.h"

/* Rows on their way to whoever takes them. */
struct manifest_reading {
    struct manifest *m;
    manifest_visit *visit; // NULL: the manifest keeps them
    void *arg;
    int64_t n;
};

/* Rows that are checked, and wait to be taken over. */
struct manifest_part {
    struct manifest_block *kept, *texts; // the manifest's from then on; texts that it copies
    struct {
        struct placement *at;
        size_t n, cap;
    } rows;
};

/* A row as it is read, and what it points to. */
struct manifest_row {
    struct placement placement;
    struct variants variants;
    struct variant_info variant[VARIANTS_MAX];
};

/* Adds a row to a part once it is checked; what it points to is copied. */
int manifest_part_add(struct manifest_part *part, const struct manifest *m, struct manifest_row *row,
                      struct err *err) MUST_CHECK;
void manifest_part_clear(void *part);
void manifest_part_release(void *part);

/* Gives row k of a part (struct manifest_part) to whoever takes the rows of `reading` (struct manifest_reading). */
int manifest_take_part(void *reading, void *part, size_t k, struct err *err) MUST_CHECK;

/* Copies n bytes into the newest of a list of blocks; NULL without memory. Freed with the blocks. */
void *manifest_keep(struct manifest_block **to, const void *bytes, size_t n);
const char *manifest_keep_text(struct manifest_block **to, const char *s);
void manifest_blocks_clear(struct manifest_block **list); // one block stays, empty
void manifest_blocks_free(struct manifest_block *list);
void manifest_blocks_move(struct manifest_block **to, struct manifest_block **from);

/* Copies a row's digest and variants, but no texts, into blocks that will be the manifest's. The row was checked. */
int manifest_keep_row(struct manifest_block **to, const struct tiers *tiers, struct placement *row,
                      struct err *err) MUST_CHECK;

/* Adds such a row; texts are copied. Checks what needs the other rows: ERR_FORMAT when id or payload came before. */
int manifest_take_row(struct manifest *m, const struct placement *row, struct err *err) MUST_CHECK;

#endif

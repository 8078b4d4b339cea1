/* table_column.h - the table's datasets as data. Allocation, reading, writing, checking and uniting walk over them.
 * Private to profiler/table*.c.
 *
 * To add a dataset: (1) its array in struct table, profiler/table/table.h (2) its line in table_columns[],
 * profiler/table/table_column.c (3) TABLE_COLUMNS below, and TABLE_PLAN's list in profiler/table/table.h when planning reads it
 * (4) its rules in profiler/table/table_check.c, and in table_drop_cells() there when its shape is CV (5)
 * docs/formats/table.md (6) its values in tests/golden/table/copy.c, the number of datasets in
 * tests/golden/table/check.py, a line per rule in tests/unit/table.c. A dataset that comes after version 1 may be
 * lacking: files of older versions stay readable.
 */
#ifndef EVP_TABLE_COLUMN_H
#define EVP_TABLE_COLUMN_H

#include "profiler/table/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool table_wants_all(enum table_want want)
{
    return want == TABLE_ALL || want == TABLE_ALL_LENIENT;
}

enum column_type { COLUMN_TEXT, COLUMN_I64, COLUMN_I32, COLUMN_F64, COLUMN_F32 };

/* Datasets of a part are there all together or not at all; PART_PROFILE always. */
enum column_part { PART_PROFILE, PART_CURVE, PART_SCORES, PART_BELIEF, PART_TIERS, TABLE_PARTS };

enum { AXIS_C, AXIS_V, AXIS_Q, AXIS_T, AXIS_P, TABLE_AXES };
#define TABLE_AXIS_LETTERS "CVQTP"

/* May a file lack the dataset? Then it reads as absent, or as 0. A new table begins with the same. */
enum column_need { NEEDED, MAY_LACK, MAY_LACK_0 };

struct column {
    const char *path; // "/contexts/id"
    enum column_type type;
    const char *shape; // letters of TABLE_AXIS_LETTERS
    size_t at;         // of the pointer in struct table
    enum column_part part;
    bool plan; // read by TABLE_PLAN
    enum column_need need;
    int since; // the version of the format that it came with; in an older file the name is another program's
};

enum { TABLE_COLUMNS = 53, TABLE_ATTRIBUTES = 7 };
extern const struct column table_columns[TABLE_COLUMNS];

struct attribute {
    const char *name;
    size_t at;
};
extern const struct attribute table_attributes[TABLE_ATTRIBUTES];

size_t column_size(enum column_type type); // bytes of an element in memory
void *column_get(const struct table *t, const struct column *c);
void column_set(struct table *t, const struct column *c, void *at);
char *attribute_get(const struct table *t, const struct attribute *a);
void attribute_set(struct table *t, const struct attribute *a, char *text);

/* Length of an axis by its letter. */
int table_axis(const struct table *t, char letter);

/* Fills n elements with what stands for nothing in this column. */
void column_fill_absent(const struct column *c, void *at, size_t n);

/* The number of elements of a column; false above COLUMN_LIMIT. */
#define COLUMN_LIMIT ((size_t)1 << 40) // far above any table, far below what overflows with 8 bytes each
bool column_count(const struct table *t, const struct column *c, size_t *n);

/* ---- between the reading child and its parent (table_image.c -> table_read.c) ---- */

/* The content of a table as flat bytes: this head, then the columns, each at a multiple of IMAGE_ALIGN. A text column
 * is its strings one after another, each with its NUL; the attributes are one more text column. */
struct image_head {
    char magic[8];
    int32_t code; // 0, or an error with its sentence
    char msg[512];
    int32_t n[TABLE_AXES];
    int64_t max_new_tokens;
    double temperature;
    struct image_piece {
        uint64_t at, bytes; // at 0: not there
    } column[TABLE_COLUMNS], attributes;
};
enum { IMAGE_ALIGN = 64 };
#define IMAGE_MAGIC "EVPTABLE"

/* Parses the HDF5 file at `path` into the empty file `fd` and writes the head last. Trusts nothing in the file. Runs in
 * the child. */
int table_image(int fd, const char *path, enum table_want want, struct err *err) MUST_CHECK;

/* table_check() that also adds the context ids to the empty map `ids`; their numbers are the rows. */
int table_check_ids(const struct table *t, struct map *ids, struct err *err) MUST_CHECK;

/* Turns every cell that breaks a rule into one that was not measured. Returns how many it turned. */
size_t table_drop_cells(struct table *t);

/* Makes a table of an image that was mapped by mmap (writable). Takes the mapping over, also on failure. */
int table_from_image(struct table *t, void *map, size_t bytes, enum table_want want, struct err *err) MUST_CHECK;

#endif

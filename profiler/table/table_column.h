/* table_column.h - the table's HDF5 datasets as data, for allocation, reading, writing, checking and uniting. Private
 * to profiler/table/.
 *
 * To add a dataset, which older files may lack: (1) its array in struct table, profiler/table/table.h (2) its line in
 * table_columns[], profiler/table/table_column.c (3) TABLE_COLUMNS below, and the list of TABLE_PLAN in
 * profiler/table/table.h unless planning reads it (4) its rules in profiler/table/table_check.c
 * (5) docs/formats/table.md (6) its values in tests/golden/table/copy.c,
 * the number of datasets in tests/golden/table/check.py, a line per rule in tests/unit/table.c.
 */
#ifndef EVP_TABLE_COLUMN_H
#define EVP_TABLE_COLUMN_H

#include "profiler/table/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_type { COLUMN_TEXT, COLUMN_I64, COLUMN_I32, COLUMN_F64, COLUMN_F32 };

/* A file has all datasets of a section or none; it always has SECTION_PROFILE. */
enum column_section {
    SECTION_PROFILE,
    SECTION_READ,
    SECTION_CURVE,
    SECTION_SCORES,
    SECTION_BELIEF,
    SECTION_TIERS,
    TABLE_SECTIONS
};

enum { AXIS_C, AXIS_V, AXIS_Q, AXIS_T, AXIS_P, TABLE_AXES };
#define TABLE_AXIS_LETTERS "CVQTP"

/* May a file lack the dataset? Then its values are absent, or 0, as in a new table. */
enum column_need { NEEDED, MAY_LACK, MAY_LACK_0 };

struct column {
    const char *path; // "/contexts/id"
    enum column_type type;
    const char *shape; // letters of TABLE_AXIS_LETTERS
    size_t at;         // offset of the pointer in struct table
    enum column_section section;
    bool plan; // read by TABLE_PLAN
    enum column_need need;
};

enum { TABLE_COLUMNS = 67, TABLE_ATTRIBUTES = 8 };
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

/* The length of an axis. */
int table_axis(const struct table *t, char letter);

/* Fills n elements with the column's value for "absent". */
void column_fill_absent(const struct column *c, void *at, size_t n);

/* The number of elements of a column; false above COLUMN_LIMIT. */
#define COLUMN_LIMIT ((size_t)1 << 40) // far above any table, far below what overflows with 8 bytes each
bool column_count(const struct table *t, const struct column *c, size_t *n);

/* ---- between the reading child and its parent (table_image.c -> table_read.c) ---- */

/* The content of a table as flat bytes: this head, then the columns, each at a multiple of IMAGE_ALIGN. A text column
 * is its strings one after another, each with its NUL. The attributes form one more text column. */
struct image_head {
    char magic[8];
    int32_t code; // 0, or an error code with its sentence
    char msg[512];
    int32_t n[TABLE_AXES];
    int64_t max_new_tokens;
    double temperature;
    struct image_span {
        uint64_t at, bytes; // at 0: absent
    } column[TABLE_COLUMNS], attributes;
};
enum { IMAGE_ALIGN = 64 };
#define IMAGE_MAGIC "EVPTABLE"

/* Parses the HDF5 file `path` into the empty file `fd`; writes the head last. Trusts nothing in the file. Runs in the
 * child. */
int table_image(int fd, const char *path, enum table_want want, struct err *err) MUST_CHECK;

/* table_check() that also fills the empty map `ids` with context id -> row. */
int table_check_ids(const struct table *t, struct map *ids, struct err *err) MUST_CHECK;

/* Makes a table from an image mapped writable by mmap. Takes over the mapping, even on failure. */
int table_from_image(struct table *t, void *map, size_t bytes, enum table_want want, struct err *err) MUST_CHECK;

#endif

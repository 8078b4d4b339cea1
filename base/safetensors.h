/* safetensors.h - the container of Hugging Face weights and of our payloads: u64 header length, JSON header, data.
 *
 * Reading maps the file and checks every offset, size, type and overlap once; data pointers are borrowed from the map.
 * Writing has two steps, header and data, so that a payload larger than memory can be written tensor by tensor. Format:
 * https://github.com/huggingface/safetensors
 */
#ifndef EVP_SAFETENSORS_H
#define EVP_SAFETENSORS_H

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

enum st_type { ST_F32, ST_F16, ST_BF16, ST_I32, ST_I64, ST_U8, ST_I8, ST_BOOL, ST_F8_E4M3, ST_F8_E8M0, ST_OTHER };
enum { ST_DIMS = 8 };

struct st_tensor {
    const char *name; // borrowed
    enum st_type type;
    int n_dims;
    int64_t dim[ST_DIMS];
    const void *at;         // borrowed from the map; may be unaligned: use memcpy; NULL: only the header was read
    uint64_t bytes, offset; // of the data; its offset in the file
};

struct safetensors {
    struct file_map map;
    struct json *header; // keeps names and metadata alive
    struct map names;    // name -> index
    struct st_tensor *tensor;
    int n;
};

int safetensors_open(struct safetensors *st, const char *path, struct err *err) MUST_CHECK;
/* The same from memory (fuzzing, payloads fetched from elsewhere); the bytes are borrowed. */
int safetensors_parse(struct safetensors *st, const void *bytes, size_t n, struct err *err) MUST_CHECK;
/* The header alone, from the first n bytes of a file of `size` bytes; tensors have an offset and no `at`. ERR_FORMAT if
 * the header is longer than n. safetensors_header_bytes() reads its length, including the first 8 bytes, from those
 * 8. */
int safetensors_parse_header(struct safetensors *st, const void *bytes, size_t n, uint64_t size,
                             struct err *err) MUST_CHECK;
uint64_t safetensors_header_bytes(const void *first);
void safetensors_close(struct safetensors *st);

const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name); // NULL: not there
const char *safetensors_meta(const struct safetensors *st, const char *key);              // NULL: not there
const char *st_type_name(enum st_type type);

/* Writing: the header announces every tensor; then write their bytes to out->f in the same order. The header is padded
 * to 8 bytes. */
struct st_meta {
    const char *key, *value;
};
struct st_header {
    const struct st_tensor *tensor; // [n]; at and bytes are ignored
    int n;
    const struct st_meta *meta; // [n_meta]
    int n_meta;
};
int safetensors_write_header(struct file_out *out, const struct st_header *header, struct err *err) MUST_CHECK;

#endif

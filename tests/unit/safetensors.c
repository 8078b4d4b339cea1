/* The safetensors container: what is written reads back, and headers that lie are refused with the reason. */
#include "base/safetensors.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

/* A file of the header's text and n bytes of data; borrowed until the next call. */
static int parse(struct safetensors *st, const char *header, size_t n, struct err *err)
{
    static char file[1024];
    size_t length = strlen(header);

    memset(file, 0, sizeof(file));
    file[0] = (char)(length & 0xff);
    file[1] = (char)(length >> 8);
    memcpy(file + 8, header, length);
    return safetensors_parse(st, file, 8 + length + n, err);
}

static void refuses(const char *header, size_t n, const char *why)
{
    struct safetensors st;
    struct err err;

    cr_assert_eq(parse(&st, header, n, &err), ERR_FORMAT, "%s", header);
    cr_assert(strstr(err.msg, why), "%s: %s", header, err.msg);
}

Test(safetensors, reads_tensors_and_metadata)
{
    struct safetensors st;
    struct err err;

    cr_assert_eq(parse(&st,
                       "{\"__metadata__\":{\"evp\":\"payload\"},"
                       "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[4,8]},"
                       "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                       "\"q\":{\"dtype\":\"F8_E5M2\",\"shape\":[3],\"data_offsets\":[8,11]},"
                       "\"none\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[8,8]}}",
                       11, &err),
                 0, "%s", err.msg);
    cr_assert_eq(st.n, 4);
    const struct st_tensor *b = safetensors_find(&st, "b"), *a = safetensors_find(&st, "a");
    cr_assert(b && b->type == ST_BF16 && b->n_dims == 2 && b->dim[0] == 2 && b->bytes == 4);
    cr_assert(a && a->n_dims == 0 && (const char *)b->at - (const char *)a->at == 4);
    cr_assert_eq(safetensors_find(&st, "q")->type, ST_OTHER);
    cr_assert_null(safetensors_find(&st, "c"));
    cr_assert_str_eq(safetensors_meta(&st, "evp"), "payload");
    cr_assert_null(safetensors_meta(&st, "version"));
    safetensors_close(&st);
}

Test(safetensors, refuses_headers_that_lie)
{
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "are outside the 7 bytes");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "are outside");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "does not take 8 bytes");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, "dimension 0");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
            "does not take 0");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "dimensions");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[0.5],\"data_offsets\":[0,1]}}", 1, "not a whole number");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets");
    refuses("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'dtype' is missing");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2, "belong to no tensor");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "follows a hole");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
            3, "'b' overlaps");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, "comes twice");
    refuses("{\"__metadata__\":{\"a\":1}}", 0, "is not a string");
    refuses("[]", 0, "not an object");
    refuses("{\"a\":", 0, "malformed JSON");
}

Test(safetensors, refuses_cut_files)
{
    struct safetensors st;
    struct err err;
    static const char long_header[8] = { 0x40 }, absurd[8] = { 0, 0, 0, 0, 1 };

    cr_assert_eq(safetensors_parse(&st, "", 0, &err), ERR_FORMAT);
    cr_assert_eq(safetensors_parse(&st, long_header, 8, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "truncated"), "%s", err.msg);
    cr_assert_eq(safetensors_parse(&st, absurd, 8, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, "not a safetensors file"), "%s", err.msg);
}

Test(safetensors, writes_what_it_reads)
{
    char path[] = "/tmp/safetensors.XXXXXX";
    struct file_out out;
    struct safetensors st;
    struct err err;
    static const float data[3] = { 1, 2, 3 };
    static const struct st_tensor tensors[] = {
        { .name = "k", .type = ST_F32, .n_dims = 2, .dim = { 1, 3 } },
        { .name = "v", .type = ST_U8, .n_dims = 1, .dim = { 2 } },
    };
    static const struct st_meta meta[] = { { "evp", "payload" }, { "note", "a \"b\"" } };

    close(mkstemp(path));
    cr_assert_eq(file_create(&out, path, &err), 0);
    cr_assert_eq(safetensors_write_header(&out, &(struct st_header){ tensors, 2, meta, 2 }, &err), 0);
    cr_assert_eq(ftell(out.f) % 8, 0);
    fwrite(data, sizeof(data), 1, out.f);
    fwrite("xy", 2, 1, out.f);
    cr_assert_eq(file_commit(&out, &err), 0);

    cr_assert_eq(safetensors_open(&st, path, &err), 0, "%s", err.msg);
    float back[3];
    memcpy(back, safetensors_find(&st, "k")->at, sizeof(back));
    cr_assert_eq(back[2], 3.0f);
    cr_assert_eq(memcmp(safetensors_find(&st, "v")->at, "xy", 2), 0);
    cr_assert_str_eq(safetensors_meta(&st, "note"), "a \"b\"");
    safetensors_close(&st);
    cr_assert_eq(truncate(path, 100), 0);
    cr_assert_eq(safetensors_open(&st, path, &err), ERR_FORMAT);
    cr_assert(strstr(err.msg, path), "%s", err.msg);
    unlink(path);
}

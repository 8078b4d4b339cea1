/* tiers.c - any bytes as tiers.json: refused with a sentence, or written back as a list that reads the same. */
#include "formats/tiers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int parse(struct tiers *t, const char *text, size_t n)
{
    struct err err;
    struct json *root = json_parse(text, n, &err);
    int code = root ? tiers_from_json(t, json_get(root, "tiers"), &err) : err.code;

    json_free(root);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tiers t, back;
    struct buf text = { 0 }, again = { 0 };

    if (parse(&t, (const char *)data, n))
        return 0;
    tiers_write(&t, &text);
    if (parse(&back, buf_str(&text), text.n))
        abort();
    tiers_write(&back, &again);
    if (strcmp(buf_str(&text), buf_str(&again)) != 0)
        abort();
    tiers_release(&t);
    tiers_release(&back);
    buf_release(&text);
    buf_release(&again);
    return 0;
}

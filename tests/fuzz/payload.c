/* payload.c - any bytes as a payload: refused with a sentence, or every tensor of it is inside the bytes. What the
 * container alone accepts is more than what the methods accept, so both are asked.
 */
#include "variants/packed_payload.h"
#include "variants/sizes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void expect_inside(const struct payload *p, const uint8_t *data, size_t n)
{
    for (int i = 0; i < p->st.n; i++)
        if ((const uint8_t *)p->st.tensor[i].at + p->st.tensor[i].bytes > data + n)
            abort();
}

/* The lengths that a file says its heads have are in the context, and add up to what the config keeps of the layers
 * that share it, or not to more where that is not known. */
static void expect_lengths(const struct packed_payload *p)
{
    int n[PAYLOAD_HEADS_MAX];
    int64_t left = 0;

    for (int l = 0; l < p->shape.n_layers; l++) {
        struct config_share share = config_share(&p->config, &p->shape, p->file.n_tokens, l);
        bool alone = share.layers <= 1;
        left = alone || l == 0 ? share.pairs : left;
        packed_payload_lengths(p, l, n);
        for (int g = 0; g < p->shape.n_kv_heads; left -= n[g++])
            if (n[g] < 0 || n[g] > p->file.n_tokens)
                abort();
        if ((alone || l == p->shape.n_layers - 1) && (p->config.knows_rows ? left != 0 : left < 0))
            abort();
    }
    for (int l = p->shape.n_layers; l < kv_all_layers(&p->shape); l++) {
        packed_payload_lengths(p, l, n);
        for (int g = 0; g < p->shape.n_kv_heads; g++)
            if (n[g] < 1 || n[g] > p->file.n_tokens || n[g] > p->shape.window)
                abort();
    }
}

/* What is read of the header alone is what is read of all of it. */
static void expect_same_header(const struct payload *whole, const uint8_t *data, size_t n)
{
    size_t header = (size_t)safetensors_header_bytes(data);
    struct payload p;
    struct err err;

    if (header < n && payload_parse_header(&p, data, header - 1, n, &err) == 0)
        abort();
    if (payload_parse_header(&p, data, header, n, &err) || p.st.n != whole->st.n ||
        payload_bytes(&p) != payload_bytes(whole) || payload_bytes(&p) > (int64_t)n)
        abort();
    for (int i = 0; i < p.st.n; i++)
        if (p.st.tensor[i].offset != whole->st.tensor[i].offset ||
            (const uint8_t *)whole->st.tensor[i].at != data + p.st.tensor[i].offset)
            abort();
    payload_close(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct packed_payload packed;
    struct payload p;
    struct err err;

    if (payload_parse(&p, data, n, &err))
        return 0;
    expect_inside(&p, data, n);
    expect_same_header(&p, data, n);
    if (payload_check_sums(&p, &err) && !*err.msg)
        abort();
    payload_close(&p);
    for (int check = PAYLOAD_HEADER; check <= PAYLOAD_WHOLE; check++) {
        if (packed_payload_parse(&packed, data, n, (enum payload_check)check, &err))
            continue;
        expect_inside(&packed.file, data, n);
        expect_lengths(&packed);
        packed_payload_close(&packed);
    }
    return 0;
}

/* payload_prefix.c - which payloads have parts, and the header of one. */
#include "formats/payload_prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header's length is little-endian");

bool config_has_parts(const char *config)
{
    return strcmp(config, "none") == 0;
}

uint64_t payload_header_bytes(const struct payload *p, uint64_t size)
{
    for (int i = 0; i < p->st.n; i++)
        size -= p->st.tensor[i].bytes;
    return size;
}

/* The dimension that counts the tokens. */
static int rows_of(const struct payload *p, const struct st_tensor *t)
{
    return strcmp(t->name, p->tokens->name) != 0;
}

static bool has_rows(const struct payload *p, const struct st_tensor *t)
{
    int rows = rows_of(p, t);

    return t->type != ST_OTHER && t->n_dims == 1 + 2 * rows && t->dim[rows] == p->n_tokens;
}

int payload_check_parts(const struct payload *p, struct err *err)
{
    if (!config_has_parts(p->config))
        return err_set(err, ERR_FORMAT, "a payload of config '%.80s' has no parts", p->config);
    for (int i = 0; i < p->st.n; i++) {
        const struct st_tensor *t = &p->st.tensor[i];
        if (!has_rows(p, t))
            return err_set(err, ERR_FORMAT, "tensor '%.80s' has no row for each token", t->name);
    }
    return 0;
}

static void cut_tensors(const struct payload *p, int n_tokens, struct st_tensor *tensor)
{
    for (int i = 0; i < p->st.n; i++) {
        tensor[i] = p->st.tensor[i];
        tensor[i].dim[rows_of(p, &tensor[i])] = n_tokens;
    }
}

/* Writes a header into allocated memory. */
static int write_header(const struct payload_made *made, char **text, size_t *n, struct err *err)
{
    struct file_out out = { .f = open_memstream(text, n) };

    if (!out.f)
        return err_nomem(err);
    int code = payload_write_header(&out, made, err);
    if (fclose(out.f) && !code)
        code = err_nomem(err);
    return code;
}

/* Adds a header, padded with blanks to `want` bytes. */
static int add_header(struct buf *b, const char *text, size_t n, uint64_t want, struct err *err)
{
    uint64_t length = want - sizeof(length);

    if (n > want)
        return err_set(err, ERR_FORMAT, "the header of a part does not fit in the length of the payload's header");
    buf_add(b, &length, sizeof(length));
    buf_add(b, text + sizeof(length), n - sizeof(length));
    for (; n < want; n++)
        buf_addc(b, ' ');
    return buf_failed(b) ? err_nomem(err) : 0;
}

int payload_part_header(const struct payload *p, uint64_t size, const struct payload_part *part, struct buf *header,
                        struct err *err)
{
    struct st_tensor *tensor = calloc((size_t)p->st.n + 1, sizeof(*tensor));
    const struct payload_made made = {
        .config = p->config,
        .model_digest = p->model_digest,
        .token_digest = part->token_digest,
        .n_tokens = part->n_tokens,
        .tensor = tensor,
        .checksum = part->checksum,
        .n = p->st.n,
        .origin = { .producer = p->origin.producer, .model_name = p->origin.model_name, .cache = p->origin.cache }
    };
    char *text = NULL;
    size_t n = 0;

    if (!tensor)
        return err_nomem(err);
    cut_tensors(p, part->n_tokens, tensor);
    int code = write_header(&made, &text, &n, err);
    if (!code)
        code = add_header(header, text, n, payload_header_bytes(p, size), err);
    free(text);
    free(tensor);
    return code;
}

/* receipt.c - the rows of a receipt: read with every check, written in the caller's order. */
#include "formats/receipt.h"

#include "formats/fields.h"

#include <string.h>

/* ---- reading ------------------------------------------------------------ */

static int read_header(struct receipt *r, const struct json *header, struct err *err)
{
    const char *digest = "";

    if (json_may_text(header, "manifest_digest", &digest, err))
        return err->code;
    if (*digest && field_check_digest("manifest_digest", digest, err))
        return err->code;
    memcpy(r->manifest_digest, digest, strlen(digest) + 1);
    return tiers_from_json(&r->tiers, json_get(header, "tiers"), err);
}

static int read_row(void *arg, const struct json *row, struct err *err)
{
    struct receipt *r = arg;
    const char *id, *tier, *operation;
    enum operation ignored; // for people; no tool acts on it
    struct entry e;
    bool added;

    if (json_want_text(row, "id", &id, err) || json_want_text(row, "tier", &tier, err) ||
        json_want_text(row, "operation", &operation, err) || operation_parse(&ignored, operation, err))
        return err->code;
    if (map_add(&r->ids, id, strlen(id), &added) < 0)
        return err_nomem(err);
    if (!added)
        return err_set(err, ERR_FORMAT, "id '%.80s' comes twice", id);
    if (strcmp(tier, "recompute") == 0)
        return 0;
    int at = tiers_find(&r->tiers, tier);
    if (at < 0)
        return err_set(err, ERR_FORMAT, "tier '%.40s' is not in the header", tier);
    if (entry_from_json(&e, row, err))
        return err->code;
    e.tier = at;
    return entries_add(&r->in, &e, err);
}

static int read_rows(struct receipt *r, struct rows_in *in, struct err *err)
{
    if (!in->header)
        return err_set(err, ERR_FORMAT, "%s is not a receipt: it has no header", in->path);
    if (read_header(r, in->header, err))
        return err_wrap(err, "%s line 1", in->path);
    return rows_rest(in, read_row, r, err);
}

int receipt_parse(struct receipt *r, struct rows_in *in, struct err *err)
{
    *r = (struct receipt){ 0 };
    int code = read_rows(r, in, err);
    if (code)
        receipt_release(r);
    return code;
}

int receipt_read(struct receipt *r, const char *path, struct err *err)
{
    struct rows_in in;

    *r = (struct receipt){ 0 };
    if (rows_open(&in, path, "receipt", err))
        return err->code;
    int code = receipt_parse(r, &in, err);
    rows_close(&in);
    return code;
}

void receipt_release(struct receipt *r)
{
    tiers_release(&r->tiers);
    entries_release(&r->in);
    map_release(&r->ids);
    *r = (struct receipt){ 0 };
}

/* ---- writing ------------------------------------------------------------ */

static void header_members(const void *arg, struct json_out *w)
{
    const struct receipt_made *made = arg;

    json_put_text(w, "manifest_digest", *made->manifest_digest ? made->manifest_digest : NULL);
    tiers_to_json(made->tiers, w, "tiers");
}

int receipt_create(struct rows_out *out, const char *path, const struct receipt_made *made, struct err *err)
{
    struct rows_made rows = { .kind = "receipt",
                              .tool = "evp-load",
                              .args = made->args,
                              .n_args = made->n_args,
                              .more = header_members,
                              .arg = made };

    return rows_create(out, path, &rows, err);
}

int receipt_put(struct rows_out *out, const struct tiers *tiers, const struct receipt_row *row, struct err *err)
{
    struct json_out w = rows_begin(out);

    if (row->entry)
        entry_to_json(row->entry, &w);
    else
        json_put_text(&w, "id", row->id);
    json_put_text(&w, "tier", row->entry ? tiers->at[row->entry->tier].name : "recompute");
    json_put_text(&w, "operation", operation_name(row->operation));
    if (row->left_out)
        json_put_bool(&w, "left_out", true);
    return rows_put(out, &w, err);
}

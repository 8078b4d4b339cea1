/* show_find.c - which prefix of a prompt is placed: searches the indexes of tiers' folders as libevicpress does. The
 * prompt is a user's message, or the body of a request. */
#include "show/show.h"

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "show/model_say.h"
#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"
#include "loader/store/folder.h"
#include "loader/store/index.h"
#include "logs/request.h"
#include "show/show_near.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROMPT_MAX = 1 << 28, STORES_MAX = 64 };

struct find {
    const struct show_find *asked;
    char *const *path; // (n) of folders
    int n;
    const char *name_space;
    struct tokenizer *tokenizer;
    struct tokens ids;
    struct index index[STORES_MAX];
    struct index_view view[STORES_MAX];
    int n_open;
};

/* ---- the prompt ------------------------------------------------------------ */

/* A request as a conversation whose last message goes on. */
static int take_request(void *arg, const struct request *r, struct err *err)
{
    struct context *c = arg;
    struct buf text = { 0 };

    if (c->text)
        return err_set(err, ERR_FORMAT, "more than one request");
    for (int i = 0; i < r->message.n; i++) {
        size_t begin = r->message.at[i], end = i + 1 < r->message.n ? r->message.at[i + 1] - REQUEST_MARK : r->bytes.n;
        buf_add(&text, r->bytes.at + begin, end - begin);
        if (ARRAY_PUSH(&c->turns, ((struct turn){ request_role(r, i), end - begin }))) {
            buf_release(&text);
            return err_nomem(err);
        }
    }
    c->text = buf_take(&text);
    return c->text ? 0 : err_nomem(err);
}

static int read_body(const struct json *body, struct context *c, struct err *err)
{
    struct request_line line = { .date = NULL };
    const struct request_visitor visitor = { take_request, c };
    struct buf one_line = { 0 };

    json_print(&one_line, body);
    int code = buf_failed(&one_line) ? err_nomem(err) : request_read(&line, one_line.at, one_line.n, &visitor, err);
    for (int i = 0; i < N_REQUEST_FLAWS && !code && !c->text; i++)
        if (line.flaws[i])
            code = err_set(err, ERR_FORMAT, "%s", request_flaw_text((enum request_flaw)i));
    if (!code && !c->text)
        code = err_set(err, ERR_FORMAT, "it is no request");
    buf_release(&one_line);
    request_line_release(&line);
    return code;
}

/* The ids of the whole prompt: the text as a context, and the ids that an empty question adds. */
static int encode(struct find *f, const char *text, struct err *err)
{
    struct prompt_ids context, asked;
    struct tokens rest = { 0 };
    struct context row = { 0 };
    struct json *body = json_parse(text, strlen(text), err);
    bool is_body = json_is_object(body);
    int code = is_body ? read_body(body, &row, err) : 0;

    json_free(body);
    if (!code)
        code = is_body ? tokenizer_context_row(f->tokenizer, &row, &context, err)
                       : tokenizer_context(f->tokenizer, text, &context, err);
    context_release(&row);
    if (code)
        return err->code;
    code = tokenizer_ask(&context, "{question}", &asked, err);
    f->ids = prompt_ids_take(&context);
    if (code)
        return code;
    code = tokenizer_question(&asked, "", &rest, err);
    prompt_ids_release(&asked);
    for (int i = 0; i < rest.n && !code; i++)
        code = tokens_add(&f->ids, rest.at[i], err);
    tokens_release(&rest);
    return code;
}

static int read_prompt(struct find *f, const struct model *m, struct err *err)
{
    struct buf text = { 0 };

    f->tokenizer = tokenizer_open_chat(m, f->asked->chat, err);
    int code = f->tokenizer ? file_read(&text, f->asked->prompt, PROMPT_MAX, err) : err->code;
    if (!code && strlen(buf_str(&text)) != text.n)
        code = err_set(err, ERR_FORMAT, "'%s' has a NUL character", f->asked->prompt);
    if (!code && encode(f, buf_str(&text), err))
        code = err_wrap(err, "'%s'", f->asked->prompt);
    buf_release(&text);
    return code;
}

/* ---- the stores -------------------------------------------------------------- */

/* The user named the folder, so it may belong to anyone. */
static int open_index(struct find *f, int i, struct err *err)
{
    struct stat st;
    int folder;

    if (stat(f->path[i], &st))
        return err_set(err, ERR_IO, "there is no folder '%s'", f->path[i]);
    if (folder_open(&folder, f->path[i], FOLDER_READ, st.st_uid, err))
        return err->code;
    f->n_open = i + 1;
    int code = index_open(&f->index[i], folder, err) ? err_wrap(err, "'%s'", f->path[i]) : 0;
    close(folder);
    f->view[i] = (struct index_view){ &f->index[i], index_name_space(&f->index[i], f->name_space) };
    return code;
}

static int find_in(const struct find *f, int first, int n, struct index_hit *hit, struct err *err)
{
    const struct index_views views = { f->view + first, n };

    int found = index_find(&views, &(struct index_prompt){ f->ids.at, (size_t)f->ids.n }, hit, err);
    hit->view += first;
    return found;
}

/* ---- the result ---------------------------------------------------------------- */

static int put_hit(struct sheet *s, const struct find *f, const struct index_hit *hit, struct err *err)
{
    const struct index_record *r = &hit->record;
    char file[OBJECT_FILE], digest[DIGEST_HEX];
    struct index_whole whole;

    object_file(r->object, file);
    digest_hex(r->key.digest, sizeof(r->key.digest), digest);
    sheet_text(s, "folder", f->path[hit->view]);
    sheet_text(s, "config", f->index[hit->view].config[r->config].at);
    sheet_text(s, "payload", file);
    sheet_bytes(s, "file_bytes", (int64_t)r->size);
    sheet_text(s, "token_digest", digest);
    if (!index_is_part(&r->key))
        return 0;
    if (index_whole_of(r, &whole, err))
        return err->code;
    sheet_int(s, "part_of_tokens", whole.n_tokens);
    return 0;
}

static int put_stores(struct sheet *s, const struct find *f, struct err *err)
{
    static const char *const column[] = { "folder", "placed_tokens", "config", "file_bytes" };
    struct index_hit hit;
    int found = 0;

    sheet_table(s, "stores", column, 4);
    for (int i = 0; i < f->n && found >= 0; i++) {
        found = find_in(f, i, 1, &hit, err);
        const struct index_record *r = found == 1 ? &hit.record : NULL;
        sheet_text(s, NULL, f->path[i]);
        sheet_int(s, NULL, r ? r->n_tokens : 0);
        sheet_text(s, NULL, r ? f->index[i].config[r->config].at : NULL);
        sheet_bytes(s, NULL, r ? (int64_t)r->size : -1);
    }
    sheet_table_end(s);
    return found < 0 ? found : 0;
}

/* If nothing is placed in the prompt's namespace: the first ones of those that are there. */
static int put_others(struct sheet *s, const struct find *f, struct err *err)
{
    enum { SHOWN = 5 };
    struct buf names = { 0 };
    bool own = false;
    int n = 0;

    for (int i = 0; i < f->n; i++) {
        own |= f->view[i].name_space >= 0;
        for (int k = 0; k < f->index[i].n_name_spaces && n < SHOWN; k++)
            buf_printf(&names, n++ ? ", %s" : "%s", f->index[i].name_space[k].at);
    }
    int code = buf_failed(&names) ? err_nomem(err) : 0;
    if (!code && !own && n)
        sheet_text(s, "placed_namespaces", buf_str(&names));
    buf_release(&names);
    return code;
}

static int say(struct sheet *s, const struct find *f, struct err *err)
{
    struct index_hit hit;
    int found = find_in(f, 0, f->n, &hit, err);

    if (found < 0)
        return found;
    sheet_text(s, "namespace", f->name_space);
    sheet_int(s, "n_tokens", f->ids.n);
    sheet_int(s, "placed_tokens", found ? hit.record.n_tokens : 0);
    const struct show_near near = { f->tokenizer, f->ids.at, f->ids.n, found ? (int)hit.record.n_tokens : 0,
                                    f->view,      f->path,   f->n };
    if (put_others(s, f, err) || (found && put_hit(s, f, &hit, err)) || show_near(s, &near, err))
        return err->code;
    return put_stores(s, f, err);
}

static int find(struct sheet *s, struct find *f, const struct model *m, struct err *err)
{
    char digest[DIGEST_HEX];

    f->name_space = f->asked->name_space ? f->asked->name_space : digest;
    if ((!f->asked->name_space && model_digest(m, digest, err)) || read_prompt(f, m, err))
        return err->code;
    for (int i = 0; i < f->n; i++)
        if (open_index(f, i, err))
            return err->code;
    return say(s, f, err);
}

int show_find(struct sheet *s, char *const *path, int n, const struct show_find *asked, struct err *err)
{
    struct find f = { .asked = asked, .path = path, .n = n };
    char *used = n <= STORES_MAX ? model_path(asked->model, err) : NULL;
    if (used && !asked->model)
        model_say(NULL);
    struct model *m = used ? model_open(used, err) : NULL;

    if (n > STORES_MAX)
        err_set(err, ERR_USAGE, "--find takes at most %d folders", STORES_MAX);
    int code = m ? find(s, &f, m, err) : err->code;
    for (int i = 0; i < f.n_open; i++)
        index_close(&f.index[i]);
    tokens_release(&f.ids);
    tokenizer_free(f.tokenizer);
    model_close(m);
    free(used);
    return code;
}

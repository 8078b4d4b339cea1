/* aim_table.c - makes evp-aim's table: a row for each context in the order of CONTEXTS, then the other rows of TABLE by
 * id, so that numbers do not depend on the history of TABLE. Contexts that TABLE lacks are tokenised like in
 * evp-profile, which needs only the model's header and tokenizer. */
#include "aiming/aim_job.h"

#include "engine/model/model.h"
#include "engine/tokens/tokenizer.h"
#include "profiler/run/unvisited.h"
#include "profiler/score/score.h"

#include <stdlib.h>
#include <string.h>

/* ---- contexts and questions --------------------------------------------------- */

struct ordered {
    uint64_t key;
    int at;
};

static int by_key(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->at - y->at;
}

/* The context of a train question, or -1. */
static int trained_context(const struct aim_job *j, int q)
{
    const struct question *is = &j->questions.at[q];

    return is->split == SPLIT_TRAIN ? map_find(&j->contexts.ids, is->context, strlen(is->context)) : -1;
}

/* Orders questions by a checksum of their ids, so that the first few of a context are a fair sample. */
static int share_train(struct aim_job *j, struct err *err)
{
    size_t n = (size_t)j->contexts.n + 1, n_questions = (size_t)j->questions.n + 1;
    struct ordered *order = calloc(n_questions, sizeof(*order));
    int used = 0;

    j->train = calloc(n, sizeof(int *));
    j->n_train = calloc(n, sizeof(int));
    j->numbers = calloc(n_questions, sizeof(int));
    if (!order || !j->train || !j->n_train || !j->numbers) {
        free(order);
        return err_nomem(err);
    }
    for (int q = 0; q < j->questions.n; q++) {
        int c = trained_context(j, q);
        order[q] = (struct ordered){ digest_xxh3(j->questions.at[q].id, strlen(j->questions.at[q].id)), q };
        if (c >= 0)
            j->n_train[c]++;
    }
    for (int c = 0; c < j->contexts.n; c++) {
        j->train[c] = j->numbers + used;
        used += j->n_train[c];
        j->n_train[c] = 0;
    }
    qsort(order, (size_t)j->questions.n, sizeof(*order), by_key);
    for (int i = 0; i < j->questions.n; i++) {
        int c = trained_context(j, order[i].at);
        if (c >= 0)
            j->train[c][j->n_train[c]++] = order[i].at;
    }
    free(order);
    return 0;
}

int aim_read(struct aim_job *j, char *const *path, struct err *err)
{
    if (contexts_read(&j->contexts, path[0], err) || questions_read(&j->questions, path[1], err))
        return err->code;
    return share_train(j, err);
}

void aim_release(struct aim_job *j)
{
    belief_release(&j->prior);
    table_release(&j->table);
    table_rows_release(&j->names);
    table_release(&j->known);
    free(j->train);
    free(j->n_train);
    free(j->numbers);
    questions_release(&j->questions);
    contexts_release(&j->contexts);
}

/* ---- contexts that the table lacks ---------------------------------------------- */

/* The data for tokenising. */
struct newcomers {
    struct config *config;
    int n_configs;
    struct model *model;
    struct tokenizer *tokenizer;
    struct kv_shape shape;
    char model_digest[DIGEST_HEX];
    struct cells cells;   // lists the contexts
    struct shards shards; // empty
    struct grid_input input;
    struct grid grid;
};

static void newcomers_release(struct newcomers *n)
{
    grid_release(&n->grid);
    cells_release(&n->cells);
    tokenizer_free(n->tokenizer);
    model_close(n->model);
    free(n->config);
}

static bool is_known(const struct aim_job *j, const char *id)
{
    return map_find(&j->names.contexts, id, strlen(id)) >= 0;
}

/* Lists the configs of --configs, or of TABLE, or the usual ones. */
static int list_configs(const struct aim_job *j, struct newcomers *n, struct err *err)
{
    const char *given = j->opt->configs ? j->opt->configs : j->known.n_configs ? NULL : CONFIG_USUAL;
    struct buf names = { 0 };

    for (int v = 0; v < j->known.n_configs && !given; v++)
        buf_printf(&names, "%s%s", v ? "," : "", j->known.config_name[v]);
    int code = buf_failed(&names) ? err_nomem(err) : 0;
    if (!code && config_list(&n->config, &n->n_configs, given ? given : buf_str(&names), err))
        code = j->opt->configs ? err_wrap(err, "--configs") : err->code;
    buf_release(&names);
    return code;
}

/* Names the difference: two models of one name differ in their digests. */
static int refuse_model(const struct table *known, const struct newcomers *n, const char *name, struct err *err)
{
    if (strcmp(known->model, name) != 0)
        return err_set(err, ERR_FORMAT, "the table was made with model '%s', not with '%s'", known->model, name);
    return err_set(err, ERR_FORMAT,
                   "the table was made with another model named '%s': its weights or its tokenizer differ "
                   "(digest %.12s..., not %.12s...)",
                   name, known->model_digest, n->model_digest);
}

static int open_model(const struct aim_job *j, struct newcomers *n, struct err *err)
{
    char *path = model_path(j->opt->model, err);
    n->model = path ? model_open(path, err) : NULL;
    free(path);
    if (!n->model || model_digest(n->model, n->model_digest, err))
        return err->code;
    const struct model_config *m = model_config(n->model);
    n->shape = (struct kv_shape){ m->n_layers, m->n_heads, m->n_kv_heads, m->head_dim, DTYPE_F32 };
    if (j->known.n_contexts && strcmp(n->model_digest, j->known.model_digest) != 0)
        return refuse_model(&j->known, n, m->name, err);
    for (int v = 0; v < n->n_configs; v++)
        if (config_check(&n->config[v], &n->shape, err))
            return err->code;
    n->tokenizer = tokenizer_open_chat(n->model, j->opt->chat, err);
    return n->tokenizer ? 0 : err->code;
}

static int tokenise(const struct aim_job *j, struct newcomers *n, struct err *err)
{
    const struct table *known = &j->known;

    for (int c = 0; c < j->contexts.n; c++)
        if (!is_known(j, j->contexts.at[c].id) &&
            map_add(&n->cells.contexts, j->contexts.at[c].id, strlen(j->contexts.at[c].id), NULL) == MAP_NOMEM)
            return err_nomem(err);
    n->input = (struct grid_input){ .contexts = &j->contexts,
                                    .questions = &j->questions,
                                    .shard = { 1, 1 },
                                    .cells = &n->cells,
                                    .config = n->config,
                                    .n_configs = n->n_configs,
                                    .max_new_tokens =
                                        known->max_new_tokens > 0 ? (int)known->max_new_tokens : j->opt->max_new_tokens,
                                    .too_long = j->opt->truncate ? TOO_LONG_CUT : TOO_LONG_REFUSE,
                                    .model_tokens = model_config(n->model)->max_tokens,
                                    .model_window = model_config(n->model)->window,
                                    .tokenizer = n->tokenizer,
                                    .shards = &n->shards };
    if (grid_begin(&n->grid, &n->input, err))
        return err->code;
    return grid_plan(&n->grid, &n->input, err);
}

/* ---- all rows in order ------------------------------------------------------------ */

struct named {
    const char *id, *digest;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

/* Lists the rows of TABLE that are not in CONTEXTS, by id. */
static int name_others(const struct aim_job *j, struct named *at, int *n)
{
    int first = *n;

    for (int c = 0; c < j->known.n_contexts; c++)
        if (map_find(&j->contexts.ids, j->known.context_id[c], strlen(j->known.context_id[c])) < 0)
            at[(*n)++] = (struct named){ j->known.context_id[c], j->known.context_token_digest[c] };
    if (*n > first)
        qsort(at + first, (size_t)(*n - first), sizeof(*at), by_id);
    return 0;
}

/* Makes a table with only the names of all rows and configs, in order. */
static int name_rows(struct table *out, const struct aim_job *j, const struct newcomers *n, struct err *err)
{
    struct named *at = calloc((size_t)j->contexts.n + (size_t)j->known.n_contexts + 1, sizeof(*at));
    struct map new = { 0 };
    int rows = 0, code = at ? 0 : err_nomem(err);

    for (int i = 0; i < n->grid.n_work && !code; i++)
        if (map_add(&new, n->grid.work[i].context->id, strlen(n->grid.work[i].context->id), NULL) == MAP_NOMEM)
            code = err_nomem(err);
    for (int c = 0; c < j->contexts.n && !code; c++) {
        const char *id = j->contexts.at[c].id;
        int known = map_find(&j->names.contexts, id, strlen(id)), work = map_find(&new, id, strlen(id));
        if (known >= 0 || work >= 0)
            at[rows++] = (struct named){ id, known >= 0 ? j->known.context_token_digest[known]
                                                        : n->grid.work[work].token_digest };
    }
    if (!code)
        code = name_others(j, at, &rows);
    if (!code)
        code = table_alloc(out, rows, n->n_configs, 0, err);
    for (int c = 0; c < rows && !code; c++) {
        out->context_id[c] = at[c].id;
        out->context_token_digest[c] = at[c].digest;
    }
    for (int v = 0; v < n->n_configs && !code; v++)
        out->config_name[v] = n->config[v].name;
    map_release(&new);
    free(at);
    return code;
}

/* Copies the scores, which uniting leaves out. */
static int copy_quality(struct table *t, const struct table *from, struct err *err)
{
    if (table_alloc_scores(t, 0, err))
        return err->code;
    for (int v = 0; v < from->n_configs; v++) {
        int to_v = table_find_config(t, from->config_name[v]);
        for (int c = 0; c < from->n_contexts; c++) {
            int to_c = map_find(&t->ids, from->context_id[c], strlen(from->context_id[c]));
            size_t to = table_cell(t, to_c, to_v), at = table_cell(from, c, v);
            t->quality_train[to] = from->quality_train[at];
            t->quality_train_std[to] = from->quality_train_std[at];
            t->quality_train_n[to] = from->quality_train_n[at];
        }
    }
    return 0;
}

static int unite(struct aim_job *j, const struct newcomers *n, struct err *err)
{
    struct table order = { 0 }, rows = { 0 };
    const struct table *from[] = { &order, &rows, &j->known };
    struct table_made made = table_made(&j->known);
    bool known = j->known.n_contexts > 0;

    if (!known)
        made = (struct table_made){
            model_config(n->model)->name, n->model_digest, "cpu", "f32", j->opt->max_new_tokens, "", 0, ""
        };
    int code = name_rows(&order, j, n, err);
    if (!code)
        code = n->model ? unvisited_rows(&rows, &n->grid, &n->shape, err) : table_alloc(&rows, 0, 0, 0, err);
    if (!code && (table_set_made(&order, &made, err) || table_set_made(&rows, &made, err)))
        code = err->code;
    if (!code)
        code = table_unite(&j->table, from, known ? 3 : 2, err);
    for (int c = 0; c < j->table.n_contexts && !code; c++)
        if (map_add(&j->table.ids, j->table.context_id[c], strlen(j->table.context_id[c]), NULL) == MAP_NOMEM)
            code = err_nomem(err);
    if (!code && n->model)
        unvisited_sizes(&j->table, &n->shape);
    if (!code)
        code = known ? copy_quality(&j->table, &j->known, err) : table_alloc_scores(&j->table, 0, err);
    table_release(&order);
    table_release(&rows);
    return code;
}

/* ---- predictions --------------------------------------------------------------------- */

static int believe(struct aim_job *j, struct err *err)
{
    struct table prior = { 0 };
    double n_asked;
    int code = j->opt->prior ? table_read(&prior, j->opt->prior, TABLE_ALL, err) : 0;

    if (!code && !j->known.n_contexts && /* the device is not known yet */
        (table_set_text(&j->table.backend, prior.backend, err) || table_set_text(&j->table.dtype, prior.dtype, err)))
        code = err->code;
    if (!code && j->opt->prior && score_prior(&j->prior, &prior, &j->table, err))
        code = err_wrap(err, "'%s'", j->opt->prior);
    if (!code)
        unvisited_times(&j->table, j->known.n_contexts ? &j->table : &prior);
    if (!code)
        code = score_predict(&j->table, j->opt->prior ? &j->prior : NULL, &n_asked, err);
    if (!code && j->known.n_contexts && !(n_asked > 0))
        code = err_set(err, ERR_FORMAT,
                       "the table lacks the numbers of questions behind its qualities: run evp-score on it");
    table_release(&prior);
    return code;
}

static int read_known(struct aim_job *j, const char *path, struct err *err)
{
    if (table_read(&j->known, path, TABLE_ALL, err))
        return err->code;
    if (!j->known.quality_train)
        return err_set(err, ERR_FORMAT, "'%s' has no qualities yet: run evp-score on it", path);
    return table_rows_add(&j->names, &j->known, err);
}

/* Does the table lack a wanted context or config? */
static bool lacks_some(const struct aim_job *j, const struct newcomers *n)
{
    for (int c = 0; c < j->contexts.n; c++)
        if (!is_known(j, j->contexts.at[c].id))
            return true;
    for (int v = 0; v < n->n_configs; v++)
        if (table_find_config(&j->known, n->config[v].name) < 0)
            return true;
    return false;
}

/* Answers of another length cannot be added to a table. */
static int check_answers(const struct aim_job *j, struct err *err)
{
    int64_t known = j->known.max_new_tokens;

    if (known <= 0 || known == j->opt->max_new_tokens)
        return 0;
    return err_set(err, ERR_FORMAT, "the table has answers of up to %lld tokens, not %d (--max-new-tokens)",
                   (long long)known, j->opt->max_new_tokens);
}

int aim_table(struct aim_job *j, const char *path, struct err *err)
{
    struct newcomers n = { .shards.lock = -1 };
    int code = path ? read_known(j, path, err) : 0;

    if (!code)
        code = list_configs(j, &n, err);
    bool lacks = !code && lacks_some(j, &n);
    if (!code && (lacks || j->opt->run)) /* new answers must come from the same model */
        code = open_model(j, &n, err);
    if (!code && j->opt->run)
        code = check_answers(j, err);
    if (!code && lacks) {
        code = tokenise(j, &n, err);
        j->say_refused(&n.grid);
        j->n_refused = n.grid.n_refused + n.grid.n_refused_questions;
    }
    if (!code)
        code = unite(j, &n, err);
    newcomers_release(&n);
    if (!code && (path || j->opt->prior))
        code = believe(j, err);
    return code;
}

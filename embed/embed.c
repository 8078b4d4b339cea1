/* embed.c - around the encoder: which texts are computed, in which batches, and what becomes of their hidden states. */
#include "embed/embed.h"

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "embed/bert.h"
#include "embed/wordpiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MOST = 1 << 20 };

struct embedder {
    struct bert bert;
    struct wordpiece *wordpiece;
    char *dir;
};

/* ---- opening ------------------------------------------------------------- */

/* Refuses a model that pools otherwise; no file of that name means mean, as sentence-transformers takes it. */
static int check_pooling(const char *dir, struct err *err)
{
    struct buf text = { 0 };
    char *path = file_join(dir, "1_Pooling/config.json");
    int code = path ? 0 : err_nomem(err);

    if (!code && file_exists(path)) {
        code = file_read(&text, path, CONFIG_MOST, err);
        struct json *config = code ? NULL : json_parse(buf_str(&text), text.n, err);
        if (!code && !config)
            code = err_wrap(err, "'%s'", path);
        if (!code && !json_true(json_get(config, "pooling_mode_mean_tokens")))
            code = err_set(err, ERR_FORMAT, "'%s': the model does not pool by the mean over its tokens", path);
        json_free(config);
    }
    buf_release(&text);
    free(path);
    return code;
}

static int open_parts(struct embedder *e, const char *dir, struct backend *backend, struct err *err)
{
    e->dir = strdup(dir);
    if (!e->dir)
        return err_nomem(err);
    if (check_pooling(dir, err))
        return err->code;
    e->wordpiece = wordpiece_open(dir, err);
    if (!e->wordpiece || bert_open(&e->bert, dir, EMBED_TOKENS, backend, err))
        return err->code;
    if (e->bert.shape.positions < 2) // [CLS] and [SEP]
        return err_set(err, ERR_FORMAT, "'%s': a model for texts of one token", dir);
    if (wordpiece_n_vocab(e->wordpiece) > e->bert.shape.vocab)
        return err_set(err, ERR_FORMAT, "'%s': a vocabulary of %d pieces, but a model for %d", dir,
                       wordpiece_n_vocab(e->wordpiece), e->bert.shape.vocab);
    return 0;
}

struct embedder *embedder_open(const char *dir, struct backend *backend, struct err *err)
{
    struct embedder *e = calloc(1, sizeof(*e));

    if (!e) {
        err_nomem(err);
        return NULL;
    }
    if (open_parts(e, dir, backend, err)) {
        embedder_close(e);
        return NULL;
    }
    return e;
}

void embedder_close(struct embedder *e)
{
    if (!e)
        return;
    bert_close(&e->bert);
    wordpiece_close(e->wordpiece);
    free(e->dir);
    free(e);
}

int embedder_width(const struct embedder *e)
{
    return e->bert.shape.width;
}

static int add_file(struct digest *digest, const char *path, struct err *err)
{
    struct file_map map;

    if (!path)
        return err_nomem(err);
    if (file_map(&map, path, err))
        return err->code;
    digest_add(digest, map.at, map.n);
    file_unmap(&map);
    return 0;
}

int embedder_digest(const struct embedder *e, char hex[DIGEST_HEX], struct err *err)
{
    char *weights = file_join(e->dir, "model.safetensors"), *vocabulary = file_join(e->dir, "vocab.txt");
    struct digest *digest = digest_new(err);
    int code = digest ? 0 : err->code;

    if (vocabulary && !file_exists(vocabulary)) { // as wordpiece_open() chooses
        free(vocabulary);
        vocabulary = file_join(e->dir, "tokenizer.json");
    }
    if (!code)
        code = add_file(digest, weights, err);
    if (!code)
        code = add_file(digest, vocabulary, err);
    if (digest)
        digest_end(digest, code ? NULL : hex);
    free(weights);
    free(vocabulary);
    return code;
}

/* ---- which texts --------------------------------------------------------- */

/* One of the different texts, tokenised. */
struct sentence {
    int first, uses;  // where it first stands in the caller's list, and how often in all
    int from, tokens; // in job.ids
};

struct job {
    struct map texts;          // text -> number of its sentence
    int *first;                // (n): where text i first stands
    struct sentence *sentence; // (texts.n)
    int32_t *id;               // the tokens of all sentences
    int n_ids, room;
};

static void job_release(struct job *job)
{
    map_release(&job->texts);
    free(job->first);
    free(job->sentence);
    free(job->id);
}

static int job_collect(struct job *job, const char *const *text, int n, struct err *err)
{
    job->first = calloc((size_t)n, sizeof(*job->first));
    job->sentence = calloc((size_t)n, sizeof(*job->sentence));
    if (!job->first || !job->sentence)
        return err_nomem(err);
    for (int i = 0; i < n; i++) {
        bool added;
        int u = map_add(&job->texts, text[i], strlen(text[i]), &added);
        if (u < 0)
            return err_nomem(err);
        if (added)
            job->sentence[u].first = i;
        job->sentence[u].uses++;
        job->first[i] = job->sentence[u].first;
    }
    return 0;
}

/* Room for one more sentence of the greatest length. */
static int job_reserve(struct job *job, struct err *err)
{
    if (job->room - job->n_ids >= EMBED_TOKENS)
        return 0;
    if (job->room > INT32_MAX / 4)
        return err_set(err, ERR_FAIL, "more than %d tokens to embed at once", job->room);
    int room = 2 * job->room + 64 * EMBED_TOKENS;
    int32_t *id = realloc(job->id, (size_t)room * sizeof(*id));
    if (!id)
        return err_nomem(err);
    job->id = id;
    job->room = room;
    return 0;
}

/* [CLS] text [SEP], cut so that the whole fits. */
static int job_tokenise(struct job *job, const struct embedder *e, const char *const *text, struct err *err)
{
    struct wordpiece_ids piece = { 0 };
    int most = e->bert.shape.positions - 2, code = 0;

    for (int u = 0; u < job->texts.n && !code; u++) {
        struct sentence *s = &job->sentence[u];
        piece.n = 0;
        code = wordpiece_encode(e->wordpiece, text[s->first], strlen(text[s->first]), &piece, err);
        if (!code)
            code = job_reserve(job, err);
        if (code)
            break;
        int n = piece.n < most ? piece.n : most;
        s->from = job->n_ids;
        s->tokens = n + 2;
        job->id[job->n_ids++] = wordpiece_cls(e->wordpiece);
        if (n > 0)
            memcpy(job->id + job->n_ids, piece.at, (size_t)n * sizeof(*piece.at));
        job->n_ids += n;
        job->id[job->n_ids++] = wordpiece_sep(e->wordpiece);
    }
    wordpiece_ids_release(&piece);
    return code;
}

/* Long ones first, so that the peak of memory comes at once; equals in the order they came. */
static int by_length(const void *a, const void *b)
{
    const struct sentence *x = a, *y = b;

    return x->tokens != y->tokens ? y->tokens - x->tokens : x->first - y->first;
}

/* ---- batches ------------------------------------------------------------- */

/* The mean of `tokens` rows, of length 1. */
static int pool(const float *hidden, int tokens, int width, float *vector, struct err *err)
{
    double squares = 0;

    for (int c = 0; c < width; c++) {
        double sum = 0;
        for (int t = 0; t < tokens; t++)
            sum += (double)hidden[(size_t)t * (size_t)width + (size_t)c];
        sum /= tokens;
        vector[c] = (float)sum;
        squares += sum * sum;
    }
    double norm = sqrt(squares);
    if (!(norm > 0) || !isfinite(norm))
        return err_set(err, ERR_FORMAT, "the embedder's weights give no finite vector");
    for (int c = 0; c < width; c++)
        vector[c] = (float)((double)vector[c] / norm);
    return 0;
}

/* As many sentences from s[0] on as one batch takes: their tokens to id and start; returns how many. */
static int fill_batch(const struct job *job, const struct sentence *s, int n, int32_t *id, int *start)
{
    int i = 0;

    for (start[0] = 0; i < n && start[i] + s[i].tokens <= BERT_ROWS; i++) {
        memcpy(id + start[i], job->id + s[i].from, (size_t)s[i].tokens * sizeof(*id));
        start[i + 1] = start[i] + s[i].tokens;
    }
    return i;
}

struct room {
    int32_t id[BERT_ROWS];
    int start[BERT_ROWS + 1];
    float hidden[]; // (BERT_ROWS, width)
};

static int run_batches(struct embedder *e, const struct job *job, float *vector, void (*progress)(void *arg, int done),
                       void *arg, struct err *err)
{
    int width = embedder_width(e), done = 0, code = 0;
    struct room *room = malloc(sizeof(*room) + BERT_ROWS * (size_t)width * sizeof(float));

    if (!room)
        return err_nomem(err);
    for (int at = 0; at < job->texts.n && !code;) {
        const struct sentence *s = &job->sentence[at];
        struct bert_batch batch = { .id = room->id, .start = room->start };
        batch.n = fill_batch(job, s, job->texts.n - at, room->id, room->start);
        code = bert_run(&e->bert, &batch, room->hidden, err);
        for (int i = 0; i < batch.n && !code; i++) {
            code = pool(room->hidden + (size_t)room->start[i] * (size_t)width, s[i].tokens, width,
                        vector + (size_t)s[i].first * (size_t)width, err);
            done += s[i].uses;
        }
        at += batch.n;
        if (progress && !code)
            progress(arg, done);
    }
    free(room);
    return code;
}

int embedder_run(struct embedder *e, const char *const *text, int n, float *vector,
                 void (*progress)(void *arg, int done), void *arg, struct err *err)
{
    size_t width = (size_t)embedder_width(e);
    struct job job = { 0 };

    if (n == 0)
        return 0;
    int code = job_collect(&job, text, n, err);
    if (!code)
        code = job_tokenise(&job, e, text, err);
    if (!code) {
        qsort(job.sentence, (size_t)job.texts.n, sizeof(*job.sentence), by_length);
        code = run_batches(e, &job, vector, progress, arg, err);
    }
    for (int i = 0; i < n && !code; i++)
        if (job.first[i] != i)
            memcpy(vector + (size_t)i * width, vector + (size_t)job.first[i] * width, width * sizeof(float));
    job_release(&job);
    return code;
}

float embed_cosine(const float *a, const float *b, int width)
{
    double dot = 0;

    for (int i = 0; i < width; i++)
        dot += (double)a[i] * (double)b[i];
    return (float)(dot > 1 ? 1 : dot < -1 ? -1 : dot);
}

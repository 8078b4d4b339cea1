/* embed.c - around the encoder: finds the distinct texts, tokenises them, sorts them by length into batches for bert.h,
 * and makes unit vectors of the means of their hidden states. The order of computation changes vectors by no more than
 * rounding. */
#include "embed/embed.h"

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "embed/bert.h"
#include "embed/wordpiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG = 1 << 20 }; /* bytes */

struct embedder {
    struct bert bert;
    struct wordpiece *wordpiece;
    char *dir;
};

/* ---- opening ------------------------------------------------------------- */

/* Refuses a model that does not pool by the mean. The default without the file is the mean, as in
 * sentence-transformers. */
static int check_pooling(const char *dir, struct err *err)
{
    struct buf text = { 0 };
    char *path = file_join(dir, "1_Pooling/config.json");
    int code = path ? 0 : err_nomem(err);

    if (!code && file_exists(path)) {
        code = file_read(&text, path, MAX_CONFIG, err);
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
    if (!e->wordpiece || bert_open(&e->bert, dir, EMBED_MAX_TOKENS, backend, err))
        return err->code;
    if (e->bert.shape.positions < 2) // [CLS] and [SEP]
        return err_set(err, ERR_FORMAT, "'%s': the model takes texts of one token only", dir);
    if (wordpiece_n_vocab(e->wordpiece) > e->bert.shape.vocab)
        return err_set(err, ERR_FORMAT, "'%s': the vocabulary has %d tokens, but the model knows %d", dir,
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

int embedder_digest(const struct embedder *e, char hex[DIGEST_HEX], struct err *err)
{
    char *weights = file_join(e->dir, "model.safetensors"), *vocabulary = file_join(e->dir, "vocab.txt");
    struct digest *digest = digest_new(err);
    int code = digest ? 0 : err->code;

    if (vocabulary && !file_exists(vocabulary)) { // as wordpiece_open() chooses
        free(vocabulary);
        vocabulary = file_join(e->dir, "tokenizer.json");
    }
    if (!code && (!weights || !vocabulary))
        code = err_nomem(err);
    if (!code)
        code = digest_add_file(digest, weights, err) ? err->code : digest_add_file(digest, vocabulary, err);
    if (digest)
        digest_end(digest, code ? NULL : hex);
    free(weights);
    free(vocabulary);
    return code;
}

/* ---- distinct texts ------------------------------------------------------ */

/* One of the distinct texts, tokenised. */
struct sentence {
    int first, uses;  // its first index in the caller's list, and how often it occurs there
    int from, tokens; // of job.ids
};

struct job {
    struct map texts;          // text -> number of its sentence
    int *first;                // (n): the first index of text i
    struct sentence *sentence; // (texts.n)
    struct tokens ids;         // of all sentences
};

static void job_release(struct job *job)
{
    map_release(&job->texts);
    free(job->first);
    free(job->sentence);
    tokens_release(&job->ids);
}

static int job_collect(struct job *job, const struct embed_texts *texts, struct err *err)
{
    job->first = calloc((size_t)texts->n, sizeof(*job->first));
    job->sentence = calloc((size_t)texts->n, sizeof(*job->sentence));
    if (!job->first || !job->sentence)
        return err_nomem(err);
    for (int i = 0; i < texts->n; i++) {
        bool added;
        int u = map_add(&job->texts, texts->at[i], strlen(texts->at[i]), &added);
        if (u < 0)
            return err_nomem(err);
        if (added)
            job->sentence[u].first = i;
        job->sentence[u].uses++;
        job->first[i] = job->sentence[u].first;
    }
    return 0;
}

/* Adds [CLS] text [SEP], cut so that all of it fits. */
static int add_sentence(struct job *job, struct sentence *s, const struct embedder *e, const char *text,
                        struct err *err)
{
    struct tokens *ids = &job->ids;
    int max = e->bert.shape.positions - 1; // before [SEP]

    s->from = ids->n;
    if (tokens_add(ids, wordpiece_cls(e->wordpiece), err) ||
        wordpiece_encode(e->wordpiece, text, strlen(text), ids, err))
        return err->code;
    if (ids->n - s->from > max)
        ids->n = s->from + max;
    if (tokens_add(ids, wordpiece_sep(e->wordpiece), err))
        return err->code;
    s->tokens = ids->n - s->from;
    return 0;
}

static int job_tokenise(struct job *job, const struct embedder *e, const struct embed_texts *texts, struct err *err)
{
    for (int u = 0; u < job->texts.n; u++)
        if (add_sentence(job, &job->sentence[u], e, texts->at[job->sentence[u].first], err))
            return err->code;
    return 0;
}

/* The longest first, so that memory peaks at once; equally long ones in the caller's order. */
static int by_length(const void *a, const void *b)
{
    const struct sentence *x = a, *y = b;

    return x->tokens != y->tokens ? y->tokens - x->tokens : x->first - y->first;
}

/* ---- batches ------------------------------------------------------------- */

/* The mean of `tokens` rows, divided by its length. */
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

/* Fills id and start with the sentences from s[0] on that fit in one batch; returns their number. */
static int fill_batch(const struct job *job, const struct sentence *s, int n, int32_t *id, int *start)
{
    int i = 0;

    for (start[0] = 0; i < n && start[i] + s[i].tokens <= BERT_ROWS; i++) {
        memcpy(id + start[i], job->ids.at + s[i].from, (size_t)s[i].tokens * sizeof(*id));
        start[i + 1] = start[i] + s[i].tokens;
    }
    return i;
}

struct batch_space {
    int32_t id[BERT_ROWS];
    int start[BERT_ROWS + 1];
    float hidden[]; // (BERT_ROWS, width)
};

static int run_batches(struct embedder *e, const struct job *job, float *vector, const struct embed_progress *progress,
                       struct err *err)
{
    int width = embedder_width(e), done = 0, code = 0;
    struct batch_space *space = malloc(sizeof(*space) + BERT_ROWS * (size_t)width * sizeof(float));

    if (!space)
        return err_nomem(err);
    for (int at = 0; at < job->texts.n && !code;) {
        const struct sentence *s = &job->sentence[at];
        struct bert_batch batch = { .id = space->id, .start = space->start };
        batch.n = fill_batch(job, s, job->texts.n - at, space->id, space->start);
        code = bert_run(&e->bert, &batch, space->hidden, err);
        for (int i = 0; i < batch.n && !code; i++) {
            code = pool(space->hidden + (size_t)space->start[i] * (size_t)width, s[i].tokens, width,
                        vector + (size_t)s[i].first * (size_t)width, err);
            done += s[i].uses;
        }
        at += batch.n;
        if (progress && !code)
            progress->report(progress->arg, done);
    }
    free(space);
    return code;
}

int embedder_run(struct embedder *e, const struct embed_texts *texts, float *vector,
                 const struct embed_progress *progress, struct err *err)
{
    size_t width = (size_t)embedder_width(e);
    struct job job = { 0 };

    if (texts->n == 0)
        return 0;
    int code = job_collect(&job, texts, err);
    if (!code)
        code = job_tokenise(&job, e, texts, err);
    if (!code) {
        qsort(job.sentence, (size_t)job.texts.n, sizeof(*job.sentence), by_length);
        code = run_batches(e, &job, vector, progress, err);
    }
    for (int i = 0; i < texts->n && !code; i++)
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

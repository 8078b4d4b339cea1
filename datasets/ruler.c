/* ruler.c - makes rows in RULER's form, which are read like rows of a file. The templates are those of RULER's
 * scripts/data/synthetic/constants.py, the tasks those of its scripts/synthetic.yaml (Copyright 2024 NVIDIA
 * CORPORATION, Apache-2.0). As in RULER all rows of a task have haystacks of one size, the largest with which a first
 * row fits; where another row does not fit, it becomes shorter step by step.
 */
#include "datasets/ruler.h"

#include "base/array.h"
#include "base/rng.h"
#include "base/tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char noise[] = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
static const char space[] = " \t\r\n\v\f";

enum { NAME = 40, ITEM = 160, WORD = 5, N_ITEMS = 5, N_ANSWERS = 10, N_DEPTHS = 40 }; // NAME, ITEM: bytes, with the NUL

enum kind { NUMBERS, WORDS, UUIDS };
static const char *const kinds[] = { "numbers", "words", "uuids" };

struct row {
    const struct ruler *r;
    const struct task *task;
    struct rng rng;
    struct buf prompt; // ends with the beginning of the reply,
    size_t reply;      // which is here
    char answer[N_ANSWERS][NAME];
    int n_answers;
    bool failed; // no memory
};

struct task {
    const char *name;
    void (*make)(struct row *w, int n); // with a haystack of n lines or words, at least N_ITEMS
    int answer;                         // tokens of the longest
    enum { NOISE, ESSAY, NEEDLES, NUMBERED } haystack;
    enum kind key, value;
    int keys, values, queries;
};

static int below(struct row *w, int n)
{
    return (int)rng_below(&w->rng, (uint64_t)n);
}

static void shuffle(struct row *w, int *at, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = below(w, i + 1), was = at[i];
        at[i] = at[j];
        at[j] = was;
    }
}

/* k different numbers below n, rising: Knuth's algorithm S. */
static void sample(struct row *w, int n, int *at, int k)
{
    for (int i = 0, found = 0; found < k; i++)
        if (below(w, n - i) < k - found)
            at[found++] = i;
}

/* letter: the first of an alphabet, or 0 for syllables. */
static void draw_word(struct row *w, char *out, char letter, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = letter ? (char)(letter + below(w, 26)) : i % 2 ? "aeiou"[below(w, 5)] : "bdfgklmnprstvz"[below(w, 14)];
    out[n] = '\0';
}

/* Adds different words until there are n. */
static void draw_words(struct row *w, struct map *words, int n, char letter, int letters)
{
    char word[NAME];

    while (words->n < n && !w->failed) {
        draw_word(w, word, letter, letters);
        w->failed = map_add(words, word, strlen(word), NULL) < 0;
    }
}

static void draw(struct row *w, enum kind kind, char out[NAME])
{
    unsigned long long a = rng_next(&w->rng), b = rng_next(&w->rng);

    draw_word(w, out, 0, WORD);
    out[WORD] = '-';
    draw_word(w, out + WORD + 1, 0, WORD);
    if (kind == NUMBERS)
        snprintf(out, NAME, "%d", 1000000 + below(w, 9000000));
    else if (kind == UUIDS)
        snprintf(out, NAME, "%08llx-%04llx-4%03llx-%04llx-%012llx", a >> 32, a >> 16 & 0xffff, a & 0xfff,
                 0x8000 | (b >> 48 & 0x3fff), b & 0xffffffffffff);
}

static void print_needle(char out[ITEM], const struct task *t, const char *key, const char *value)
{
    snprintf(out, ITEM, "One of the special magic %s for %s is: %s.", kinds[t->value], key, value);
}

/* The next n bytes of an essay are a word; after the last comes the first. */
static const char *next_word(const char *essay, const char *at, size_t *n)
{
    at += *n;
    at += strspn(at, space);
    at = *at ? at : essay + strspn(essay, space);
    *n = strcspn(at, space);
    return at;
}

static bool ends_sentence(const char *word, size_t n)
{
    while (n > 0 && strchr("\"')]", word[n - 1]))
        n--;
    return n > 0 && strchr(".!?", word[n - 1]);
}

/* n lines with the items between them, or n words of the essay with the items between its sentences. */
static void add_haystack(struct row *w, int n, char item[][ITEM], int n_items)
{
    bool essay = w->task->haystack == ESSAY, needles = w->task->haystack == NEEDLES;
    char key[NAME], value[NAME], needle[ITEM], end = essay ? ' ' : '\n';
    const char *word = essay ? w->r->essay : needles ? needle : noise;
    size_t *start = calloc((size_t)n, sizeof(*start)), from = 0, length = 0;
    struct buf text = { 0 };
    int at[N_ITEMS], n_starts = 0;

    for (int i = 0; start && i < n; i++) {
        if (i == 0 || ends_sentence(word, length))
            start[n_starts++] = text.n;
        if (needles) {
            draw(w, w->task->key, key);
            draw(w, w->task->value, value);
            print_needle(needle, w->task, key, value);
        }
        word = essay ? next_word(w->r->essay, word, &length) : word;
        length = essay ? length : strlen(word);
        buf_add(&text, word, length);
        buf_addc(&text, end);
    }
    sample(w, essay ? N_DEPTHS : n, at, n_items);
    for (int i = 0; i < n_items; i++) {
        int64_t place = essay ? (int64_t)n_starts * at[i] / (N_DEPTHS - 1) : at[i];
        size_t to = place < n_starts ? start[place] : text.n;
        buf_add(&w->prompt, buf_str(&text) + from, to - from);
        buf_printf(&w->prompt, "%s%c", item[i], end);
        from = to;
    }
    buf_add(&w->prompt, buf_str(&text) + from, text.n - from);
    w->failed |= !start || buf_failed(&text) || buf_failed(&w->prompt);
    if (!w->failed)
        w->prompt.at[w->prompt.n - 1] = '\n';
    buf_release(&text);
    free(start);
}

static void add_answer(struct row *w, const char *text)
{
    snprintf(w->answer[w->n_answers++], NAME, "%s", text);
}

static void make_niah(struct row *w, int n)
{
    const struct task *t = w->task;
    char key[NAME], value[NAME], item[N_ITEMS][ITEM], type[sizeof("numbers")];
    int n_items = t->keys * t->values, order[N_ITEMS];
    bool one = t->queries * t->values == 1;
    const char *are = one ? "is" : "are";
    struct buf query = { 0 };

    for (int i = 0; i < n_items; i++)
        order[i] = i;
    shuffle(w, order, n_items);
    for (int i = 0; i < n_items; i++) {
        int k = i / t->values;
        if (i % t->values == 0)
            draw(w, t->key, key);
        if (i % t->values == 0 && k < t->queries)
            buf_printf(&query, "%s%s", k == 0 ? "" : k < t->queries - 1 ? ", " : ", and ", key);
        draw(w, t->value, value);
        print_needle(item[order[i]], t, key, value);
        if (k < t->queries)
            add_answer(w, value);
    }
    snprintf(type, sizeof(type), "%.*s", (int)strlen(kinds[t->value]) - one, kinds[t->value]);
    buf_printf(&w->prompt, "%s special magic %s %s hidden within the following text. ", one ? "A" : "Some", type, are);
    buf_printf(&w->prompt, "Make sure to memorize it. I will quiz you about the %s afterwards.\n", type);
    add_haystack(w, n, item, n_items);
    buf_printf(&w->prompt, "What %s%s the special magic %s for %s mentioned in the provided text?", are,
               one ? "" : " all", type, buf_str(&query));
    w->reply = w->prompt.n;
    buf_printf(&w->prompt, " The special magic %s for %s mentioned in the provided text %s", type, buf_str(&query),
               are);
    buf_release(&query);
}

/* Makes a solved example of the row so far; another follows it. */
static void solve(struct row *w)
{
    bool numbered = w->task->haystack == NUMBERED;

    for (int i = 0; i < w->n_answers; i++)
        if (numbered)
            buf_printf(&w->prompt, " %d. %s", i + 1, w->answer[i]);
        else
            buf_printf(&w->prompt, " %s", w->answer[i]);
    buf_adds(&w->prompt, numbered ? "\n" : "\n\n");
    w->n_answers = 0;
}

static void add_chain(struct row *w, int n, int letters)
{
    char item[N_ITEMS][ITEM], value[NAME];
    const char *before = value;
    struct map names = { 0 };

    snprintf(value, sizeof(value), "%d", 10000 + below(w, 89999));
    draw_words(w, &names, N_ITEMS, 'A', letters);
    for (int i = 0; i < names.n; i++) {
        snprintf(item[i], ITEM, i ? "VAR %s = VAR %s " : "VAR %s = %s", names.at[i].key, before);
        before = names.at[i].key;
        add_answer(w, before);
    }
    buf_adds(&w->prompt, "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n");
    add_haystack(w, n, item, names.n);
    buf_printf(&w->prompt, "Question: Find all variables that are assigned the value %s in the text above.", value);
    w->reply = w->prompt.n;
    buf_printf(&w->prompt,
               " Answer: According to the chain(s) of variable assignment in the text above, %d variables are assigned "
               "the value %s, they are: ",
               N_ITEMS, value);
    map_release(&names);
}

static void make_vt(struct row *w, int n)
{
    add_chain(w, 14, 3);
    solve(w);
    add_chain(w, n, 5);
}

static void list_add(struct row *w, struct tokens *list, int word, int times)
{
    for (; times > 0 && !w->failed; times--)
        w->failed = ARRAY_PUSH(list, word) != 0;
}

/* The listed words in random order. */
static void add_list(struct row *w, struct tokens *list, struct map *words)
{
    shuffle(w, list->at, list->n);
    for (int i = 0; i < list->n; i++) {
        if (w->task->haystack == NUMBERED)
            buf_printf(&w->prompt, "%d. ", i + 1);
        buf_printf(&w->prompt, "%s%c", words->at[list->at[i]].key, i + 1 < list->n ? ' ' : '\n');
    }
    tokens_release(list);
    map_release(words);
}

/* 10 words `often` and n words `seldom`. */
static void add_counted(struct row *w, int n, int often, int seldom)
{
    struct map words = { 0 };
    struct tokens list = { 0 };

    draw_words(w, &words, N_ANSWERS + n, 0, WORD);
    for (int i = 0; i < words.n; i++)
        list_add(w, &list, i, i < N_ANSWERS ? often : seldom);
    for (int i = 0; i < words.n && i < N_ANSWERS; i++)
        add_answer(w, words.at[i].key);
    buf_adds(&w->prompt,
             "Below is a numbered list of words. In these words, some appear more often than others. Memorize "
             "the ones that appear most often.\n");
    add_list(w, &list, &words);
    buf_adds(&w->prompt, "Question: What are the 10 most common words in the above list?");
    w->reply = w->prompt.n;
    buf_adds(&w->prompt, " Answer: The top 10 words that appear most often in the list are:");
}

static void make_cwe(struct row *w, int n)
{
    bool few = w->r->tokens < 4096;

    add_counted(w, few ? 10 : 30, few ? 3 : 10, few ? 1 : 3);
    solve(w);
    add_counted(w, n, few ? 6 : 30, few ? 1 : 3);
}

/* Word k, from 1, is there n / zeta(2) / k^2 times; the first is "...". */
static void make_fwe(struct row *w, int n)
{
    struct map words = { 0 };
    struct tokens list = { 0 };

    w->failed |= map_add(&words, "...", 3, NULL) < 0;
    draw_words(w, &words, (w->r->tokens - w->task->answer) / 50, 'a', 6);
    for (int k = 1; k <= words.n; k++)
        list_add(w, &list, k - 1, (int)(n * 6 / (M_PI * M_PI) / k / k));
    for (int k = 1; k < words.n && k <= 3; k++)
        add_answer(w, words.at[k].key);
    buf_adds(&w->prompt,
             "Read the following coded text and track the frequency of each coded word. Find the three most "
             "frequently appeared coded words. ");
    add_list(w, &list, &words);
    buf_adds(&w->prompt,
             "Question: Do not provide any explanation. Please ignore the dots '....'. What are the three most "
             "frequently appeared words in the above coded text?");
    w->reply = w->prompt.n;
    buf_adds(&w->prompt, " Answer: According to the coded text above, the three most frequently appeared words are:");
}

static const struct task tasks[] = {
    { "niah_single_1", make_niah, 128, NOISE, WORDS, NUMBERS, 1, 1, 1 },
    { "niah_single_2", make_niah, 128, ESSAY, WORDS, NUMBERS, 1, 1, 1 },
    { "niah_single_3", make_niah, 128, ESSAY, WORDS, UUIDS, 1, 1, 1 },
    { "niah_multikey_1", make_niah, 128, ESSAY, WORDS, NUMBERS, 4, 1, 1 },
    { "niah_multikey_2", make_niah, 128, NEEDLES, WORDS, NUMBERS, 1, 1, 1 },
    { "niah_multikey_3", make_niah, 128, NEEDLES, UUIDS, UUIDS, 1, 1, 1 },
    { "niah_multivalue", make_niah, 128, ESSAY, WORDS, NUMBERS, 1, 4, 1 },
    { "niah_multiquery", make_niah, 128, ESSAY, WORDS, NUMBERS, 4, 1, 4 },
    { .name = "vt", .make = make_vt, .answer = 30 },
    { .name = "cwe", .make = make_cwe, .haystack = NUMBERED, .answer = 120 },
    { .name = "fwe", .make = make_fwe, .answer = 50 },
};

/* Makes row i with a haystack of n, and adds it to *out if that is not NULL. 1: it fits; 0: it is too long. */
static int make_row(struct row *w, int i, int n, struct buf *out, struct err *err)
{
    struct json_out json = { .buf = out };
    char id[NAME];

    snprintf(id, sizeof(id), "%d-%d", w->r->tokens, i);
    w->rng = rng_named(rng_named(w->r->seed, w->task->name).state, id);
    w->n_answers = 0;
    buf_clear(&w->prompt);
    w->task->make(w, n);
    if (w->failed || buf_failed(&w->prompt))
        return err_nomem(err);
    int64_t n_tokens = w->r->count(w->r->arg, w->prompt.at, err);
    bool fits = n_tokens + w->task->answer <= w->r->tokens;
    if (n_tokens < 0 || !fits || !out)
        return n_tokens < 0 ? err->code : fits;
    json_begin(&json, NULL, '{');
    json_put_text(&json, "_id", id);
    json_put_text_n(&json, "input", w->prompt.at, w->reply);
    json_put_text(&json, "answer_prefix", w->prompt.at + w->reply);
    json_begin(&json, "outputs", '[');
    for (int a = 0; a < w->n_answers; a++)
        json_put_text(&json, NULL, w->answer[a]);
    json_end(&json, ']');
    json_end(&json, '}');
    buf_addc(out, '\n');
    return buf_failed(out) ? err_nomem(err) : 1;
}

static int make_task(struct import *im, struct row *w, struct err *err)
{
    int size = N_ITEMS - 1, high = w->r->tokens, got = 0;
    struct buf rows = { 0 };

    while (got >= 0 && high - size > 1) {
        int middle = size + (high - size) / 2 < 4 * size ? size + (high - size) / 2 : 4 * size;
        got = make_row(w, 0, middle, NULL, err);
        *(got == 1 ? &size : &high) = middle;
    }
    for (int i = 1; got >= 0 && i <= w->r->rows; i++) {
        got = 0;
        for (int n = size; got == 0 && n >= N_ITEMS; n -= 1 + n / 64)
            got = make_row(w, i, n, &rows, err);
        if (got == 0)
            got = err_set(err, ERR_FORMAT, "%d tokens are too few for %s", w->r->tokens, w->task->name);
    }
    struct import_file file = { w->task->name, w->task->name, buf_str(&rows), rows.n };
    int code = got < 0 ? got : import_bytes(im, &file, err);
    buf_release(&rows);
    return code;
}

int ruler_make(struct import *im, const struct ruler *r, struct err *err)
{
    struct row w = { .r = r };
    int code = 0;

    for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++)
        if (map_add(&im->datasets, tasks[i].name, strlen(tasks[i].name), NULL) < 0)
            return err_nomem(err);
    for (w.task = tasks; w.task < tasks + sizeof(tasks) / sizeof(*tasks) && !code; w.task++) {
        const char *name = w.task->name;
        bool lacks = w.task->haystack == ESSAY && !r->essay[strspn(r->essay, space)];
        bool wanted = map_find(&im->wanted, name, strlen(name)) >= 0;
        if (wanted && lacks)
            code = err_set(err, ERR_USAGE, "%s hides its needles in essays: name a file of text", name);
        else if (im->wanted.n ? wanted : !lacks)
            code = make_task(im, &w, err);
    }
    buf_release(&w.prompt);
    return code;
}

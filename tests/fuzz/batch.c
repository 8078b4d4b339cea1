/* batch - any bytes as the results of a batch about two contexts, the second with several sections: they are refused,
 * or each context is answered or given up at most once, with questions of sane length. */
#include "qgen/batch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PER_CONTEXT = 3, LONG = 2500 };

static char path[] = "/tmp/fuzz-batch.XXXXXX", long_text[LONG + 1];
static int ended[2];

static void remove_file(void)
{
    unlink(path);
}

static void put(const uint8_t *data, size_t n)
{
    static int made = -1;

    if (made < 0) {
        made = mkstemp(path);
        atexit(remove_file);
        memset(long_text, 'x', LONG);
    }
    if (ftruncate(made, 0) || pwrite(made, data, n, 0) != (ssize_t)n)
        abort();
}

static int replied(void *arg, struct asked_slice s, const struct question_list *list, const struct usage *usage,
                   struct err *err)
{
    (void)arg, (void)err;
    if (s.context > 1 || list->n > PER_CONTEXT || usage->prompt < 0 || usage->completion < 0)
        abort();
    return 0;
}

static int answered(void *arg, int context, struct question_list *list, struct err *err)
{
    (void)arg, (void)err;
    if (ended[context]++ || list->n == 0 || list->n > PER_CONTEXT)
        abort();
    for (int i = 0; i < list->n; i++)
        if (strlen(list->at[i].text) < MIN_QUESTION || strlen(list->at[i].text) > MAX_QUESTION)
            abort();
    return 0;
}

static void failed(void *arg, int context, const struct err *why)
{
    (void)arg;
    if (ended[context]++ || !*why->msg)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const bool wanted[] = { true, true };
    static char a[] = "a", b[] = "b", text[] = "A text.";
    struct context two[] = { { .id = a, .text = text }, { .id = b, .text = long_text } };
    struct contexts contexts = { .at = two, .n = 2 };
    struct asked asked = { .contexts = &contexts,
                           .model = "m",
                           .per_context = PER_CONTEXT,
                           .window = 512,
                           .events = { NULL, replied, answered, failed } };
    struct batch_totals totals;
    struct err err;

    put(data, n);
    ended[0] = ended[1] = 0;
    if (asked_open(&asked, wanted, &err))
        abort();
    if (batch_read(path, &asked, &totals, &err) && err.code != ERR_FORMAT)
        abort();
    if (totals.replies < ended[0] + ended[1])
        abort();
    asked_close(&asked);
    return 0;
}

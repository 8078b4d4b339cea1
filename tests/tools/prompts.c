/* prompts MODEL CONTEXTS QUESTIONS [MANIFEST] - the prompts of questions about contexts.
 *
 * Without MANIFEST prints the ids of every context, how many of them its questions share, and of every question:
 *
 *     context ID N_SHARED: IDS...
 *     question ID: IDS...
 *
 * With it does as a serving process: tokenises each prompt whole, in one go, and looks up how much of it is placed.
 */
#include "engine/model/model.h"
#include "engine/tokens/tokenizer_internal.h"
#include "formats/context.h"
#include "loader/libevicpress/evicpress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int failed, const char *why)
{
    if (!failed)
        return;
    fprintf(stderr, "prompts: %s\n", why);
    exit(1);
}

static void print_ids(const char *kind, const char *id, const struct tokens *ids)
{
    printf("%s %s:", kind, id);
    for (int i = 0; i < ids->n; i++)
        printf(" %d", ids->at[i]);
    putchar('\n');
}

static void print_prompts(const struct tokenizer *t, const struct context *c, const struct questions *q)
{
    struct prompt_ids context, asked;
    struct buf name = { 0 };
    struct err err;

    must(tokenizer_context_row(t, c, &context, &err) || tokenizer_ask(&context, c->ask, &asked, &err), err.msg);
    buf_printf(&name, "%s %d", c->id, asked.ids.n);
    print_ids("context", buf_str(&name), &context.ids);
    for (int i = 0; i < q->n; i++) {
        struct tokens ids = { 0 };
        if (strcmp(q->at[i].context, c->id) != 0)
            continue;
        must(tokenizer_question(&asked, q->at[i].text, &ids, &err), err.msg);
        print_ids("question", q->at[i].id, &ids);
        tokens_release(&ids);
    }
    buf_release(&name);
    prompt_ids_release(&asked);
    prompt_ids_release(&context);
}

/* The prompts here hold nothing that looks like a special token, so all may be parsed. */
static void look_up(const struct tokenizer *t, const struct context *c, const struct question *q,
                    struct evp_store *store)
{
    const char *at = strstr(c->ask, "{question}");
    struct evp_prefix found = { 0 };
    struct evp_error error;
    struct tokens ids = { 0 };
    struct buf whole = { 0 };
    struct err err;

    buf_printf(&whole, "%s%s%.*s%s%s%s", t->chat.head, c->text, (int)(at - c->ask), c->ask, q->text,
               at + strlen("{question}"), t->chat.tail);
    must(tokenizer_encode(t, (struct text_view){ whole.at, whole.n }, SPECIAL_PARSED, &ids, &err), err.msg);
    must(evp_find(store, ids.at, (size_t)ids.n, &found, &error) < 0, error.text);
    printf("%s: %lld of %d tokens are placed\n", q->id, (long long)found.n_tokens, ids.n);
    tokens_release(&ids);
    buf_release(&whole);
}

int main(int argc, char **argv)
{
    struct contexts c = { 0 };
    struct questions q = { 0 };
    struct evp_store *store = NULL;
    struct evp_error error;
    struct err err;

    must(argc < 4 || argc > 5, "MODEL CONTEXTS QUESTIONS [MANIFEST]");
    struct model *m = model_open(argv[1], &err);
    struct tokenizer *t = m ? tokenizer_open(m, &err) : NULL;
    must(!t || contexts_read(&c, argv[2], &err) || questions_read(&q, argv[3], &err), err.msg);
    must(argc == 5 && evp_open(&store, argv[4], &error), error.text);
    for (int i = 0; i < c.n && !store; i++)
        print_prompts(t, &c.at[i], &q);
    for (int i = 0; i < q.n && store; i++)
        look_up(t, &c.at[map_find(&c.ids, q.at[i].context, strlen(q.at[i].context))], &q.at[i], store);
    evp_close(store);
    contexts_release(&c);
    questions_release(&q);
    tokenizer_free(t);
    model_close(m);
    return 0;
}

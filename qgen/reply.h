/* reply.h - what comes back from a chat completion service: tolerant of how a list of questions is wrapped, strict in
 * what counts as a question.
 *
 * Models wrap their JSON in code fences and prose, give a bare list, one object per line, objects with the question in
 * a member, or no JSON at all but one question a line. All of that is read. What is taken are strings of sane length,
 * each once (question_list.h).
 */
#ifndef EVP_REPLY_H
#define EVP_REPLY_H

#include "base/buf.h"
#include "base/err.h"
#include "qgen/question_list.h"

#include <stdbool.h>
#include <stdint.h>

struct usage { // tokens, as the service counts them
    int64_t prompt, completion;
};

struct reply_body {
    const char *at;
    size_t n;
    const char *secret; // the key that was sent; NULL: none
};

/* Reads the body of a successful reply: adds its usage, and its questions with the given place. Fails with ERR_FORMAT
 * when it is not such a body or holds no question; the list is then unchanged. Whatever looks like a part of the secret
 * becomes '*' first. */
int reply_read(struct question_list *list, size_t place, struct usage *usage, const struct reply_body *body,
               struct err *err) MUST_CHECK;

/* Adds the questions in what a model wrote, if there are any. */
int reply_questions(struct question_list *list, size_t place, const char *content, struct err *err) MUST_CHECK;

/* Adds the message in the body of a refusal, shortened and without the secret, if there is one. */
void reply_complaint(struct buf *out, const struct reply_body *body);

/* A refusal of a request that used `use` (bits of enum prompt_use): the one of them that its words complain about, or
 * 0. Servers give such a refusal any status (llama.cpp 500, vLLM 400). Of the two response formats it is the one in
 * use. */
unsigned reply_refuses(const struct reply_body *body, unsigned use);

/* Do the words of a refusal say that the text is too long? Then it is about this context, not about all. */
bool reply_blames_length(const struct reply_body *body);

#endif

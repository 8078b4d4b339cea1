/* reply.h - the replies of a chat completion service: tolerant of the wrapping of a list of questions, strict about
 * the questions.
 *
 * Models wrap their JSON in code fences and prose, give a bare list, one object per line, objects with the question in
 * a member, or no JSON at all but one question per line. All of these are read; strings of sane length are taken, each
 * once (question_list.h).
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

struct json;
/* The member of that name; 0 unless it is a number that one request may have, so that sums do not overflow. */
int64_t usage_count(const struct json *v, const char *name);
void usage_add(struct usage *to, const struct usage *more);

struct reply_body {
    const char *at;
    size_t n;
    const char *secret; // the key that was sent; NULL: none
};

/* Reads the body of a successful reply: adds its usage, and its questions with the given position. Fails with
 * ERR_FORMAT when it is not such a body or holds no question; the list is then unchanged. Long substrings of the secret
 * become '*' first. */
int reply_read(struct question_list *list, size_t position, struct usage *usage, const struct reply_body *body,
               struct err *err) MUST_CHECK;

/* Adds the questions in what a model wrote, if there are any. */
int reply_questions(struct question_list *list, size_t position, const char *content, struct err *err) MUST_CHECK;

/* Adds the message in the body of a refusal, shortened and without the secret, if there is one. */
void reply_complaint(struct buf *out, const struct reply_body *body);

/* The feature, one of the bits `use` (enum prompt_use) of the request, that a refusal complains about, or 0. Of the two
 * response formats it is the one in use. Servers refuse with any status (llama.cpp 500, vLLM 400). */
unsigned reply_refuses(const struct reply_body *body, unsigned use);

/* Does a refusal say that the text is too long? Then it concerns this context, not all. */
bool reply_blames_length(const struct reply_body *body);

#endif

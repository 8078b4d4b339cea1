/* reply.h - what comes back from a chat completion service: tolerant of how a list of questions is wrapped, strict in
 * what counts as a question.
 *
 * Models wrap their JSON in code fences and prose, give a bare list, one object per line, objects with the question in
 * a member, or no JSON at all but one question a line. All of that is read; what is taken are strings of sane length,
 * each once.
 */
#ifndef EVP_REPLY_H
#define EVP_REPLY_H

#include "base/buf.h"
#include "base/err.h"
#include "qgen/list.h"

#include <stdbool.h>
#include <stdint.h>

struct usage { // tokens, as the service counts them
    int64_t prompt, completion;
};

/* Reads the body of a successful reply: adds its usage, and its questions with the given place. Fails with ERR_FORMAT
 * when it is not such a body or holds no question; the list is then unchanged. Whatever looks like a piece of `secret`
 * (NULL: none) is made unreadable first. */
int reply_read(struct asked_list *list, size_t place, struct usage *usage, const char *body, size_t n,
               const char *secret, struct err *err) MUST_CHECK;

/* Adds the questions in what a model wrote; the list is unchanged when there are none. */
int reply_questions(struct asked_list *list, size_t place, const char *content, struct err *err) MUST_CHECK;

/* Adds what the body of a refusal says, shortened; nothing when it says nothing. */
void reply_complaint(struct buf *out, const char *body, size_t n, const char *secret);

/* Does a refusal complain about the response_format of the request? */
bool reply_refuses_schema(int status, const char *body, size_t n);

#endif

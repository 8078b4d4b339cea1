/* offline.h - questions about a text, made from the text itself: no model, no network, any language.
 *
 * Each question quotes a few words that occur in the text once and asks what stands with them: how the sentence goes
 * on, which number or name follows, what a term means, what a section says. So the passage is needed to answer, and the
 * answer shows when it is gone. The text is divided into as many equal parts as questions are wanted, and each part
 * gives one; where a part has nothing to ask about (a table, a repeated form), its neighbours give more.
 *
 * Instructions that open a prompt template ("You are given a report ...") and the labels of a form that repeats
 * ("Question:", "Passage 3:") are never asked about.
 */
#ifndef EVP_OFFLINE_H
#define EVP_OFFLINE_H

#include "base/err.h"
#include "base/rng.h"
#include "qgen/list.h"

/* Adds up to n questions, in the order of the text; fewer when the text has no more. The same text, n and state of *rng
 * give the same questions. */
int offline_ask(struct asked_list *list, const char *text, int n, struct rng *rng, struct err *err) MUST_CHECK;

#endif

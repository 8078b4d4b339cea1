/* offline.h - questions about a text, made from the text itself: no model, no network, any language.
 *
 * Each question quotes a few words that occur in the text once and asks for something that belongs to them: the rest of
 * the sentence, the number or name that follows, the meaning of a term, the contents of a section. It cannot be
 * answered without the passage, so the answer shows when the passage is gone. The text is divided into n equal slices,
 * and each slice gives one question. Where a slice has nothing to ask about (a table, a repeated form), other slices
 * give more.
 *
 * Instructions that open a prompt template ("You are given a report ...") and the labels of a form that repeats
 * ("Question:", "Passage 3:") are never asked about.
 */
#ifndef EVP_OFFLINE_H
#define EVP_OFFLINE_H

#include "base/err.h"
#include "base/rng.h"
#include "qgen/question_list.h"

/* Adds up to n questions, in the order of the text; fewer when the text has no more. The same text, n and state of *rng
 * give the same questions. */
int offline_ask(struct question_list *list, const char *text, int n, struct rng *rng, struct err *err) MUST_CHECK;

/* Adds the probes of what compression is known to break while answers still sound alike (profiler/score/conduct.h): a
 * form that is asked for, the instructions before the text, and what the text does not say. They come last. */
int offline_probe(struct question_list *list, size_t n, struct err *err) MUST_CHECK; // n: bytes of the text

#endif

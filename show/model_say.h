/* model_say.h - names the model before the work, so that nobody measures the default model by mistake. Prints messages.
 */
#ifndef EVP_MODEL_SAY_H
#define EVP_MODEL_SAY_H

#include "engine/model/shape.h"
#include "engine/tokens/tokenizer.h"
#include "formats/context.h"

/* given: the value of --model. NULL is the default model: a warning says that it is for demonstrations. */
void model_say(const char *given);

/* The same for contexts read from `path`. If they come from a log (evp-import --requests), their data set is the model
 * that the log names. Where that is another one: ERR_USAGE without --model, a warning with it. Names are equal if,
 * after the last '/', one begins with the other, in any case: a file's name often adds a quantisation. */
int model_say_for(const char *given, const struct contexts *contexts, const char *path, struct err *err) MUST_CHECK;

/* Warns of an architecture that is not known, and says if the cache has numbers of other than 16 bits. */
void model_say_shape(const struct shape *shape);

/* Warns of a chat template with which servers write today's date. t: NULL is fine. */
void model_say_date(const char *given, const struct tokenizer *t);

#endif

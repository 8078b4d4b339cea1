/* replay_say.h - messages of evp-replay, and of evp-gain, which replays. */
#ifndef EVP_REPLAY_SAY_H
#define EVP_REPLAY_SAY_H

#include "replay/lane.h"
#include "replay/replay_out.h"
#include "replay/trace.h"

/* A line of the table, and whether a queue grows; the summary's figures. */
void replay_say_line(const struct replay_line *line, const struct lane *l);

/* Requests that shared their times. */
void replay_say_spread(const struct trace *t);

#endif

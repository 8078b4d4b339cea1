/* replay_out.h - the tables that evp-replay writes: docs/formats/replay.md. */
#ifndef EVP_REPLAY_OUT_H
#define EVP_REPLAY_OUT_H

#include "base/buf.h"
#include "replay/lane.h"
#include "replay/trace.h"

/* What begins each line. */
struct replay_line {
    const char *policy;
    double rate, alpha;
    const char *inputs; // what was replayed, in words; no tabs or newlines
};

/* replay.tsv: a line per lane. */
void replay_out_head(struct buf *out, const struct tiers *tiers);
void replay_out_line(struct buf *out, const struct replay_line *line, const struct lane *l);

/* --per-request: a line per request. */
void replay_requests_head(struct buf *out);
void replay_requests(struct buf *out, const struct replay_line *line, const struct lane *l, const struct trace *trace);

#endif

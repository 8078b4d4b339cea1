/* gain.h - shared by the files of evp-gain: what was asked for, the replay, and its results. */
#ifndef EVP_GAIN_H
#define EVP_GAIN_H

#include "cmd/request_logs.h"
#include "replay/assumed.h"
#include "replay/lane.h"
#include "show/show_sheet.h"

enum { HBM, DRAM, SSD, GAIN_TIERS };

struct gain_choice {
    struct opt_list dataset;
    const char *model, *gpu, *reuse, *sweep, *price, *picture;
    int time_unit;
    uint64_t hbm, dram, ssd, ssd_read, ssd_write; // hbm: UINT64_MAX: not given
    int gpus;
    bool json, partial;
};

/* Rows of the table; one more lane finds what comes again: without bounds, each request after the one before. */
enum { GAIN_NONE, GAIN_HBM, GAIN_ROWS = 7, GAIN_AGAIN = GAIN_ROWS, GAIN_LANES };

struct gain {
    const struct gain_choice *c;
    struct replayed_logs logs;
    double ssd_read, ssd_write; // bytes per second
    double weights_bytes;
    int n_gpus, gpus_each; // gpus_each: that hold the weights once
    int64_t capacity[GAIN_TIERS];
    struct assumed assumed;
    struct placement_input in;
    struct replay_world world;
    int64_t *at; // (n) ns: arrivals
    struct lane lane[GAIN_LANES];
    int64_t of_lane[GAIN_LANES][GAIN_TIERS]; // capacities
};

double gain_span(const struct gain *g); // of the log, in seconds; NAN: its requests have no times

/* The share of all tokens that a cache had. */
double gain_found(const struct lane *l);

/* Runs n lanes, whose world, capacities and GPUs are set, each under its policy. */
int gain_run_lanes(struct lane *lane, const char *const *policy, int n, struct err *err) MUST_CHECK;

/* ---- gain_say.c ---- */

int gain_print(const struct gain *g, char **path, int n, struct err *err) MUST_CHECK;
void gain_begin(struct sheet *s, char **path, int n);                            // names the logs
int gain_end(struct sheet *s, const struct gain *g, struct err *err) MUST_CHECK; // prints and releases it
void gain_say(const struct gain *g, char **path, int n);
void gain_put_facts(struct sheet *s, const struct gain *g);

/* ---- gain_sweep.c: --sweep and --price ---- */

int gain_sweep_check(const struct gain_choice *c, struct err *err) MUST_CHECK; // before anything is read
int gain_sweep(const struct gain *g, char **path, int n, struct err *err) MUST_CHECK;

#endif

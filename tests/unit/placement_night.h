/* placement_night.h - files and steps that the tests of placement/ share: one night of planning over
 * tests/data/table.h5, which tests/data/table.py made: three contexts, three configs, numbers to check by hand.
 */
#ifndef EVP_PLACEMENT_NIGHT_H
#define EVP_PLACEMENT_NIGHT_H

#include "placement/placement.h"

enum { NONE, KEYDIFF, KIVI, CONFIGS };
enum { DRAM, SSD, TIERS };

#define DRAM_FREE ((int64_t)150000)
#define SSD_FREE  ((int64_t)300000)

extern char tiers_path[], extra_path[], manifest_path[], next_path[]; // between night_open() and night_close()

void night_open(void);
void night_close(void);
void night_write(const char *path, const char *text);
void night_tiers(int64_t dram, int64_t ssd); // tiers_path, with these capacities
struct placement_files night_files(void);    // the table and tiers_path

void night_read(struct placement_input *in, const struct placement_files *f);
void night_read_rules(struct placement_input *in, const char *rules); // by way of extra_path
void night_solve(struct placement_plan *p, struct placement_input *in);
void night_manifest(const struct placement_plan *p, const char *path);

#endif

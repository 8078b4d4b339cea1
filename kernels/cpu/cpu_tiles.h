/* cpu_tiles.h - the tile registers of AMX, as the files *_amx.c configure them: eight tiles of 16 rows of 64 bytes. */
#ifndef EVP_CPU_TILES_H
#define EVP_CPU_TILES_H

#include <immintrin.h>
#include <stdint.h>

enum { SIDE = 16 }; // rows of a tile, and words of a row

/* For the calling thread; it must call _tile_release() at the end. */
static inline void tiles_configure(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all = { .palette = 1,
              .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
              .rows = { SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE } };
    _tile_loadconfig(&all);
}

#endif

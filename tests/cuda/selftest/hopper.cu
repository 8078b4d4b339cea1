/* hopper.cu - barriers of phases and products of warpgroups: what is right computes what a naive product computes, and
 * what breaks a rule is found. */
#include "tests/cuda/selftest/selftest.h"

enum { ROWS = 64, RIGHT = 128, PANEL = 64, GROUP = 128 };

/* What a faulty kernel does wrong. */
enum fault {
    NOTHING,
    NO_FENCE,
    NO_WAIT,
    EARLY_READ,
    EARLY_WRITE,
    EARLY_COPY,
    ONE_RUNS,
    WAIT_NAMES_LESS,
    COPY_NOT_FENCED,
    COPY_NOT_WAITED,
    STRIDE,
    PANEL_BYTES,
    SWIZZLE,
    ONE_WARP,
};

/* Numbers whose products and sums are exact. */
static float left_at(int i)
{
    return (float)(i * 7 % 13 - 6);
}
static float right_at(int i)
{
    return (float)(i * 5 % 11 - 5) / 2;
}

static std::vector<uint16_t> matrix(int n, float (*number)(int))
{
    std::vector<uint16_t> m((size_t)n);

    for (int i = 0; i < n; i++)
        m[(size_t)i] = float_to_bf16(number(i));
    return m;
}

/* Copies n rows of `columns` numbers to a tile of panels, in the words of the PTX ISA: address bits 4 to 6 are xor'ed
 * with bits 7 to 9. */
__device__ void copy_tile(char *to, const uint16_t *from, int n, int columns, bool commit = true)
{
    for (int i = (int)threadIdx.x % GROUP; i < n * columns / 8; i += GROUP) {
        int row = i / (columns / 8), column = i % (columns / 8) * 8;
        int at = column / PANEL * n * 128 + row * 128 + column % PANEL * 2;
        copy_async_16(to + (at ^ (at >> 3 & 0x70)), from + i * 8);
    }
    if (commit)
        copy_async_commit();
}

__device__ void copies_are_there(enum fault fault)
{
    if (fault != COPY_NOT_WAITED)
        copy_async_wait<0>();
    if (fault != COPY_NOT_FENCED)
        shared_fence_async();
    __syncthreads();
}

template <int N> __device__ void put_result(float *out, const float (&d)[N][4])
{
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 % 4 * 16 + lane / 4;

    for (int j = 0; j < N; j++)
        for (int e = 0; e < 4; e++)
            out[(row + e / 2 * 8) * N * 8 + j * 8 + lane % 4 * 2 + e % 2] = d[j][e];
}

/* out (64, 128) = left (64, K) right (128, K)^T */
template <int K, enum fault fault = NOTHING>
__global__ void rows_product(float *out, const uint16_t *left, const uint16_t *right)
{
    float d[RIGHT / 8][4] = {};

    SHARED_DYNAMIC(char, shared);
    char *a = aligned(shared), *b = a + ROWS * K * 2;
    copy_tile(a, left, ROWS, K);
    copy_tile(b, right, RIGHT, K);
    copies_are_there(fault);
    if (fault != NO_FENCE)
        wgmma_fence(d);
    for (int c = 0; c < K && !(fault == ONE_WARP && threadIdx.x < 32 && c == 0); c += 16) {
        uint64_t l = wgmma_tile(a + c / PANEL * ROWS * 128 + c % PANEL * 2),
                 r = wgmma_tile(b + c / PANEL * RIGHT * 128 + c % PANEL * 2);
        if (fault == STRIDE)
            r ^= (uint64_t)(1024 / 16 ^ 2048 / 16) << 32;
        if (fault == SWIZZLE)
            r ^= (uint64_t)3 << 62;
        if (c == 0)
            wgmma_rows<false>(d, l, r);
        else
            wgmma_rows<true>(d, l, r);
    }
    wgmma_commit();
    if (fault == EARLY_READ)
        put_result(out, d);
    if (fault == EARLY_COPY)
        copy_tile(b, left, ROWS, K);
    if (fault == EARLY_COPY)
        copy_async_wait<0>();
    if (fault == ONE_RUNS)
        wgmma_wait<1>(d);
    else if (fault == WAIT_NAMES_LESS)
        wgmma_wait<0>();
    else if (fault != NO_WAIT)
        wgmma_wait<0>(d);
    if (fault != EARLY_READ)
        put_result(out, d);
    if (fault == COPY_NOT_WAITED)
        copy_async_wait<0>();
}

/* out (64, N) = left (64, 128) right (128, N), left in registers */
template <int N, enum fault fault = NOTHING>
__global__ void columns_product(float *out, const uint16_t *left, const uint16_t *right)
{
    float d[N / 8][4] = {};
    uint32_t a[RIGHT / 16][4];
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16 + lane / 4;

    SHARED_DYNAMIC(char, shared);
    char *b = aligned(shared);
    copy_tile(b, right, RIGHT, N);
    for (int k = 0; k < RIGHT / 16; k++)
        for (int e = 0; e < 4; e++) {
            const uint16_t *at = left + (row + e % 2 * 8) * RIGHT + k * 16 + e / 2 * 8 + lane % 4 * 2;
            a[k][e] = at[0] | (uint32_t)at[1] << 16;
        }
    copies_are_there(fault);
    if (fault == NO_FENCE)
        wgmma_fence(d);
    else
        wgmma_fence(d, a);
    for (int k = 0; k < RIGHT / 16; k++)
        wgmma_columns(d, a[k], wgmma_tile(b + k * 16 * 128, RIGHT * (fault == PANEL_BYTES ? 64 : 128)));
    wgmma_commit();
    if (fault == EARLY_WRITE)
        a[1][0] = 0;
    wgmma_wait<0>(d, a);
    put_result(out, d);
}

/* by_rows: the right matrix is (128, K), else (K, N). */
static void check_product(void (*kernel)(float *, const uint16_t *, const uint16_t *), int N, int K, bool by_rows)
{
    std::vector<uint16_t> left = matrix(ROWS * K, left_at), right = matrix(N * K, right_at);
    float *out = device_array<float>((size_t)(ROWS * N));

    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    KERNEL_LAUNCH(kernel, 1, GROUP, 64 << 10, 0, out, device_array(left.size(), left.data()),
                  device_array(right.size(), right.data()));
    std::vector<float> host = back(out, (size_t)(ROWS * N));
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < N; column++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += left_at(row * K + k) * right_at(by_rows ? column * K + k : k * N + column);
            MUST(host[(size_t)(row * N + column)] == sum);
        }
}

template <int K, enum fault fault> static void rows_of()
{
    check_product(rows_product<K, fault>, RIGHT, K, true);
}

template <int N, enum fault fault> static void columns_of()
{
    check_product(columns_product<N, fault>, N, RIGHT, false);
}

/* ---- phases: one warpgroup copies, another multiplies ---------------------------------------- */

enum { TILES = 5, STAGES = 2, TILE_BYTES = RIGHT * PANEL * 2 };
enum phase_fault { RIGHT_PHASES, PARITY, NOT_EMPTY, NOT_FULL, NEVER_FULL, NOT_BEGUN, MORE_GIVEN, MORE_TAKEN };

template <enum phase_fault fault>
__device__ void copy_tiles(char *tiles, uint64_t *full, uint64_t *empty, const uint16_t *right)
{
    for (int i = 0; i < TILES; i++) {
        if (fault != NOT_EMPTY)
            phase_wait(&empty[i % STAGES], (unsigned)(i / STAGES + 1) % 2);
        copy_tile(tiles + i % STAGES * TILE_BYTES, right + i * RIGHT * PANEL, RIGHT, PANEL);
        copy_async_wait<0>();
        shared_fence_async();
        if (fault != NEVER_FULL || i < TILES - 1)
            phase_arrive(&full[i % STAGES]);
    }
}

/* out (64, 128) = left (64, 64) times the sum of TILES matrices (128, 64)^T */
template <enum phase_fault fault> __global__ void tiles_product(float *out, const uint16_t *left, const uint16_t *right)
{
    SHARED_DYNAMIC(char, shared);
    SHARED_ARRAY(uint64_t, full, STAGES);
    SHARED_ARRAY(uint64_t, empty, STAGES);
    char *a = aligned(shared), *tiles = a + ROWS * PANEL * 2;
    float d[RIGHT / 8][4] = {};
    if (threadIdx.x < STAGES && fault != NOT_BEGUN) {
        phase_init(&full[threadIdx.x], GROUP);
        phase_init(&empty[threadIdx.x], GROUP / 32);
    }
    if (threadIdx.x < GROUP)
        copy_tile(a, left, ROWS, PANEL);
    copies_are_there(NOTHING);
    if (threadIdx.x < GROUP) {
        registers_give<fault == MORE_GIVEN ? 256 : fault == MORE_TAKEN ? 248 : 240>();
        copy_tiles<fault>(tiles, full, empty, right);
        return;
    }
    registers_take<fault == MORE_TAKEN ? 256 : 248>();
    for (int i = 0; i < TILES; i++) {
        if (fault != NOT_FULL)
            phase_wait(&full[i % STAGES], (unsigned)(i / STAGES + (fault == PARITY)) % 2);
        wgmma_fence(d);
        for (int c = 0; c < PANEL; c += 16)
            wgmma_rows<true>(d, wgmma_tile(a + c * 2), wgmma_tile(tiles + i % STAGES * TILE_BYTES + c * 2));
        wgmma_commit();
        wgmma_wait<0>(d);
        if (threadIdx.x % 32 == 0)
            phase_arrive(&empty[i % STAGES]);
    }
    put_result(out, d);
}

template <enum phase_fault fault> static void phases_of()
{
    std::vector<uint16_t> left = matrix(ROWS * PANEL, left_at), right = matrix(TILES * RIGHT * PANEL, right_at);
    float *out = device_array<float>(ROWS * RIGHT);

    CUDA(cudaFuncSetAttribute(tiles_product<fault>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    KERNEL_LAUNCH(tiles_product<fault>, 1, 2 * GROUP, 64 << 10, 0, out, device_array(left.size(), left.data()),
                  device_array(right.size(), right.data()));
    std::vector<float> host = back(out, ROWS * RIGHT);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < RIGHT; column++) {
            float sum = 0;
            for (int i = 0; i < TILES; i++)
                for (int k = 0; k < PANEL; k++)
                    sum += left_at(row * PANEL + k) * right_at((i * RIGHT + column) * PANEL + k);
            MUST(host[(size_t)(row * RIGHT + column)] == sum);
        }
}

const struct test hopper_tests[] = {
    { "rows of 64 columns", rows_of<64, NOTHING>, NULL, NULL },
    { "rows of 128 columns", rows_of<128, NOTHING>, NULL, NULL },
    { "64 columns, left in registers", columns_of<64, NOTHING>, NULL, NULL },
    { "128 columns, left in registers", columns_of<128, NOTHING>, NULL, NULL },
    { "a product on another device", rows_of<64, NOTHING>, "on compute capability 8.9, not 9.0", "EMU_SM=89" },
    { "phases on another device", phases_of<RIGHT_PHASES>, "on compute capability 8.0, not 9.0", "EMU_SM=80" },
    { "a product without a fence", rows_of<64, NO_FENCE>, "that no wgmma_fence() names", NULL },
    { "a left operand without a fence", columns_of<64, NO_FENCE>, "that no wgmma_fence() names", NULL },
    { "a product that is never waited for", rows_of<64, NO_WAIT>, "was never waited for", NULL },
    { "a result that is read too early", rows_of<64, EARLY_READ>, "wrong: host[", NULL },
    { "an operand that is written too early", columns_of<64, EARLY_WRITE>, "wrong: host[", NULL },
    { "a tile that is written too early", rows_of<64, EARLY_COPY>, "no shared_fence_async() came after", NULL },
    { "a wait for fewer groups", rows_of<64, ONE_RUNS>, "which may still run", NULL },
    { "a wait that names no result", rows_of<64, WAIT_NAMES_LESS>, "does not name the result", NULL },
    { "copies that are not fenced", rows_of<64, COPY_NOT_FENCED>, "no shared_fence_async() came after", NULL },
    { "copies that are not waited for", rows_of<64, COPY_NOT_WAITED>, "reads a copy that nobody waited for", NULL },
    { "a wrong stride", rows_of<64, STRIDE>, "wrong: host[", NULL },
    { "wrong panels", columns_of<128, PANEL_BYTES>, "wrong: host[", NULL },
    { "panels of which there is one", columns_of<64, PANEL_BYTES>, NULL, NULL },
    { "another swizzle", rows_of<64, SWIZZLE>, "a tile without the 128-byte swizzle", NULL },
    { "a warp that leaves out a product", rows_of<64, ONE_WARP>, "do not multiply the same", NULL },
    { "phases", phases_of<RIGHT_PHASES>, NULL, NULL },
    { "a wrong parity", phases_of<PARITY>, "deadlock: no thread can go on", NULL },
    { "places that are not empty", phases_of<NOT_EMPTY>, "deadlock: no thread can go on", NULL },
    { "places that are not full", phases_of<NOT_FULL>, "deadlock: no thread can go on", NULL },
    { "a phase that never ends", phases_of<NEVER_FULL>, "deadlock: no thread can go on", NULL },
    { "phases without a beginning", phases_of<NOT_BEGUN>, "before phase_init()", NULL },
    { "registers that a thread does not have", phases_of<MORE_GIVEN>, "256, and the thread has 248", NULL },
    { "more registers than there are", phases_of<MORE_TAKEN>, "the warpgroups take", NULL },
    { NULL, NULL, NULL, NULL },
};

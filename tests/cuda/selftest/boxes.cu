/* boxes.cu - tensor maps and copies of boxes: what is right brings the rows of a map in the swizzle of a product, and
 * what breaks a rule is found. */
#include "tests/cuda/selftest/selftest.h"

enum { COLUMNS = 128, PANEL = 64, BOX = 64, N_ROWS = 150, BOX_BYTES = BOX * PANEL * 2, THREADS = 128 };

struct boxed {
    int column, row; // of the box
};

/* What a faulty kernel does wrong. */
enum box_fault {
    NOTHING,
    NO_BYTES,
    FEWER_BYTES,
    MORE_BYTES,
    NO_ARRIVAL,
    NOT_FENCED,
    UNALIGNED,
    OUTSIDE,
    NOT_WAITED,
    TWICE,
    CLEARED_EARLY,
    CLEARED_NOT_FENCED,
    MAP_IN_SHARED,
    READ_EARLY,
};

static float number_at(int i)
{
    return (float)(i * 7 % 251 - 125);
}

typedef decltype(&cuTensorMapEncodeTiled) encode_fn;

static encode_fn encoder()
{
    void *encode = NULL;
    cudaDriverEntryPointQueryResult found;

    CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
    MUST(encode && found == cudaDriverEntryPointSuccess);
    return (encode_fn)encode;
}

/* What a map is made of. */
struct parts {
    uintptr_t at;
    cuuint32_t rank;
    cuuint64_t size[2], pitch[1];
    cuuint32_t box[2], step[2];
};

static CUresult encode(CUtensorMap *map, const struct parts &p)
{
    return encoder()(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, p.rank, (void *)p.at, p.size, p.pitch, p.box, p.step,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static struct parts parts_of(const void *at)
{
    return { (uintptr_t)at, 2, { COLUMNS, N_ROWS }, { COLUMNS * 2 }, { PANEL, BOX }, { 1, 1 } };
}

static CUtensorMap map_of(const void *at)
{
    CUtensorMap map;

    MUST(encode(&map, parts_of(at)) == CUDA_SUCCESS);
    return map;
}

static uint16_t *device_rows()
{
    std::vector<uint16_t> host(N_ROWS * COLUMNS);

    for (size_t i = 0; i < host.size(); i++)
        host[i] = float_to_bf16(number_at((int)i));
    return device_array(host.size(), host.data());
}

__device__ void expect(uint64_t *full, enum box_fault fault)
{
    if (fault == NO_BYTES)
        phase_arrive(full);
    else if (fault != NO_ARRIVAL)
        phase_arrive_bytes(full, fault == FEWER_BYTES  ? BOX_BYTES / 2
                                 : fault == MORE_BYTES ? BOX_BYTES * 2
                                                       : BOX_BYTES);
}

/* out (BOX, PANEL) = the box, in f32 and without the swizzle: address bits 4 to 6 are xor'ed with bits 7 to 9. */
template <enum box_fault fault>
__global__ void copy_out(float *out, const __grid_constant__ CUtensorMap map, struct boxed b)
{
    SHARED_DYNAMIC(char, shared);
    SHARED_ARRAY(uint64_t, full, 1);
    SHARED_ARRAY(uint64_t, other, sizeof(CUtensorMap) / sizeof(uint64_t));
    char *tile = aligned(shared) + (fault == UNALIGNED ? 64 : fault == OUTSIDE ? 4 * BOX_BYTES : 0);
    if (threadIdx.x == 0) {
        phase_init(full, 1);
        if (fault == CLEARED_NOT_FENCED)
            shared_fence_async();
        if (fault == CLEARED_NOT_FENCED)
            shared_clear_16(tile);
        if (fault != NOT_FENCED && fault != CLEARED_NOT_FENCED)
            shared_fence_async();
        if (fault == MAP_IN_SHARED)
            memcpy(other, &map, sizeof(map));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(full, fault);
        copy_box(tile, fault == MAP_IN_SHARED ? (const CUtensorMap *)other : &map, b.column, b.row, full);
        if (fault == TWICE)
            copy_box(tile, &map, b.column, b.row, full);
        if (fault == CLEARED_EARLY)
            shared_clear_16(tile);
    }
    if (fault != NOT_WAITED && fault != READ_EARLY)
        phase_wait(full, 0);
    for (int i = (int)threadIdx.x; i < BOX * PANEL; i += THREADS) {
        int at = i * 2;
        out[i] = bf16_to_float(*(const uint16_t *)(tile + (at ^ (at >> 3 & 0x70))));
    }
    if (fault == READ_EARLY)
        phase_wait(full, 0);
}

template <enum box_fault fault> static void check_box(const void *at, struct boxed b)
{
    float *out = device_array<float>(BOX * PANEL);

    KERNEL_LAUNCH(copy_out<fault>, 1, THREADS, 2 * BOX_BYTES, 0, out, map_of(at), b);
    std::vector<float> host = back(out, BOX * PANEL);
    for (int r = 0; r < BOX; r++)
        for (int c = 0; c < PANEL; c++) {
            int row = b.row + r, column = b.column + c;
            bool inside = row >= 0 && row < N_ROWS && column >= 0 && column < COLUMNS;
            MUST(host[(size_t)(r * PANEL + c)] == (inside ? number_at(row * COLUMNS + column) : 0));
        }
}

template <enum box_fault fault> static void box_of()
{
    check_box<fault>(device_rows(), { PANEL, 3 });
}

static void boxes_at_the_edges()
{
    static const struct boxed at[] = { { 0, 0 },      { PANEL, N_ROWS - BOX }, { 0, N_ROWS - 5 }, { 0, -3 },
                                       { 0, N_ROWS }, { PANEL, -BOX },         { 96, 0 },         { -8, 7 } };
    const uint16_t *rows = device_rows();

    for (const struct boxed &b : at)
        check_box<NOTHING>(rows, b);
}

/* A map of memory that was freed, and one of the host's. */
static void freed_rows()
{
    uint16_t *rows = device_rows();

    CUDA(cudaFree(rows));
    check_box<NOTHING>(rows, { 0, 0 });
}

static void host_rows()
{
    alignas(16) static uint16_t rows[N_ROWS * COLUMNS];

    check_box<NOTHING>(rows, { 0, 0 });
}

/* The rows of a map end with those that were allocated. */
static void too_many_rows()
{
    check_box<NOTHING>(device_rows() + COLUMNS, { 0, N_ROWS - 2 });
}

static void no_map()
{
    float *out = device_array<float>(BOX * PANEL);

    KERNEL_LAUNCH(copy_out<NOTHING>, 1, THREADS, 2 * BOX_BYTES, 0, out, CUtensorMap{}, boxed{});
    back(out, 1);
}

/* What the driver refuses. */
static void maps_that_are_refused()
{
    const uint16_t *rows = device_rows();
    const struct parts right = parts_of(rows);
    struct parts wrong[] = { right, right, right, right, right, right, right, right, right, right, right, right };
    alignas(64) char space[sizeof(CUtensorMap) + 64];
    CUtensorMap map;

    wrong[0].at += 8;
    wrong[1].pitch[0] += 8;
    wrong[2].pitch[0] = (cuuint64_t)1 << 40;
    wrong[3].size[1] = 0;
    wrong[4].size[1] = ((cuuint64_t)1 << 32) + 1;
    wrong[5].box[1] = 257;
    wrong[6].box[1] = 0;
    wrong[7].box[0] = 2 * PANEL; // more than the swizzle has
    wrong[8].box[0] = 12;        // not a multiple of 16 bytes
    wrong[9].step[0] = 0;
    wrong[10].step[1] = 9;
    wrong[11].rank = 6;
    for (const struct parts &p : wrong)
        MUST(encode(&map, p) == CUDA_ERROR_INVALID_VALUE);
    MUST(encode(reinterpret_cast<CUtensorMap *>(space + 32), right) == CUDA_ERROR_INVALID_VALUE);
    void *none = &map;
    cudaDriverEntryPointQueryResult found;
    CUDA(cudaGetDriverEntryPointByVersion("cuNothing", &none, 12000, cudaEnableDefault, &found));
    MUST(!none && found == cudaDriverEntryPointSymbolNotFound);
}

/* ---- phases that order what threads write ----------------------------------------------- */

enum order { ORDERED, NOT_WAITED_FOR, TOO_EARLY };

/* One warp writes numbers that another one reads, each in the place of the one before it; or one number too many. */
template <enum order order> __global__ void hand_over(int *out)
{
    SHARED_ARRAY(int, number, 1);
    SHARED_ARRAY(uint64_t, full, 1);
    SHARED_ARRAY(uint64_t, empty, 1);
    if (threadIdx.x == 0) {
        phase_init(full, 1);
        phase_init(empty, 1);
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) {
            phase_wait(empty, (unsigned)(i + 1) % 2);
            *number = i;
            phase_arrive(full);
        } else if (threadIdx.x == 32) {
            if (order != NOT_WAITED_FOR)
                phase_wait(full, (unsigned)i % 2);
            out[i] = *number;
            phase_arrive(empty);
        }
    }
    if (order == TOO_EARLY && threadIdx.x == 0)
        *number = 3;
}

template <enum order order> static void handed_over()
{
    int *out = device_array<int>(3);

    KERNEL_LAUNCH(hand_over<order>, 1, 64, 0, 0, out);
    std::vector<int> host = back(out, 3);
    for (int i = 0; i < 3 && order == ORDERED; i++)
        MUST(host[(size_t)i] == i);
}

__global__ void ask_for(const float *at)
{
    prefetch_l2(at);
}

template <bool right> static void asked_for()
{
    static float mine;

    KERNEL_LAUNCH(ask_for, 1, 32, 0, 0, right ? device_array<float>(1) : &mine);
    CUDA(cudaDeviceSynchronize());
}

const struct test box_tests[] = {
    { "a box", box_of<NOTHING>, NULL, NULL },
    { "boxes at the edges of a map", boxes_at_the_edges, NULL, NULL },
    { "maps that are refused", maps_that_are_refused, NULL, NULL },
    { "a box on another device", box_of<NOTHING>, "on compute capability 8.9, not 9.0", "EMU_SM=89" },
    { "a box whose bytes nobody expects", box_of<NO_BYTES>,
      NOT_TSAN("a phase is left in which -8192 bytes are missing"), NULL },
    { "fewer bytes than come", box_of<FEWER_BYTES>, "boxes bring 4096 bytes more than the phase", NULL },
    { "more bytes than come", box_of<MORE_BYTES>, "deadlock: no thread can go on", NULL },
    { "a box without an arrival", box_of<NO_ARRIVAL>, "deadlock: no thread can go on", NULL },
    { "a phase whose beginning is not fenced", box_of<NOT_FENCED>, "came after phase_init()", NULL },
    { "a box to an odd address", box_of<UNALIGNED>, "not to 128-byte aligned shared memory", NULL },
    { "a box beyond shared memory", box_of<OUTSIDE>, "not to 128-byte aligned shared memory", NULL },
    { "a box that nobody waits for", box_of<NOT_WAITED>, NOT_TSAN("nobody waited for the box"), NULL },
    { "a box that is read too early", box_of<READ_EARLY>, NOT_TSAN("wrong: host["), NULL },
    { "a box in another one's place", box_of<TWICE>, "over what nobody waited for", NULL },
    { "memory cleared while a box is on its way", box_of<CLEARED_EARLY>, "a copy is on its way there", NULL },
    { "a box over what is not fenced", box_of<CLEARED_NOT_FENCED>, "over what no shared_fence_async() came after",
      NULL },
    { "a map in shared memory", box_of<MAP_IN_SHARED>, "not a tensor map among the kernel's parameters", NULL },
    { "a map that is none", no_map, "not a tensor map among the kernel's parameters", NULL },
    { "a map of memory that was freed", freed_rows, "is not in the device's memory", NULL },
    { "a map of the host's memory", host_rows, "is not in the device's memory", NULL },
    { "a map of too many rows", too_many_rows, "row 149 of the map is not in the device's memory", NULL },
    { "numbers handed over by phases", handed_over<ORDERED>, NULL, NULL },
    { "a number that is read too early", handed_over<NOT_WAITED_FOR>, RACE, NULL },
    { "a number that is overwritten too early", handed_over<TOO_EARLY>, RACE, NULL },
    { "asking for device memory", asked_for<true>, NULL, NULL },
    { "asking for the host's memory", asked_for<false>, "not an address of device memory", NULL },
    { NULL, NULL, NULL, NULL },
};

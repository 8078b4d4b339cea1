/* right.cu - the emulated device computes what a device computes. */
#include "tests/cuda/selftest/selftest.h"

__global__ void where_am_i(int *out)
{
    int i = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    int t = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));

    out[i * 64 + t] = i * 1000 + t;
}

static void indices()
{
    int *out = device_array<int>(12 * 64);

    KERNEL_LAUNCH(where_am_i, dim3(2, 3, 2), dim3(4, 8, 2), 0, 0, out);
    CUDA(cudaDeviceSynchronize());
    std::vector<int> host = back(out, 12 * 64);
    for (int i = 0; i < 12 * 64; i++)
        MUST(host[(size_t)i] == i / 64 * 1000 + i % 64);
    CUDA(cudaFree(out));
}

__global__ void sum_block(float *out, const float *x, int n)
{
    SHARED_ARRAY(float, part, 4);
    float s = 0;

    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        s += x[i];
    for (int by = 16; by; by /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, by);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = part[0] + part[1] + part[2] + part[3];
}

static void sum()
{
    std::vector<float> x(1000, 1.0f);
    float *in = device_array(1000, x.data()), *out = device_array<float>(1);

    KERNEL_LAUNCH(sum_block, 1, 128, 0, 0, out, in, 1000);
    CUDA(cudaDeviceSynchronize());
    MUST(back(out, 1)[0] == 1000);
}

__global__ void warp_ops(unsigned *out)
{
    unsigned lane = threadIdx.x, all = 0xffffffffu;

    out[lane] = __shfl_sync(all, lane * 3, 5);
    out[32 + lane] = __shfl_xor_sync(all, lane, 6);
    out[64 + lane] = __shfl_up_sync(all, lane, 4);
    out[96 + lane] = __shfl_down_sync(all, lane, 4);
    out[128 + lane] = __ballot_sync(all, lane % 3 == 0);
    out[160 + lane] = (unsigned)__any_sync(all, lane == 31) + 2u * (unsigned)__all_sync(all, lane < 31);
    out[192 + lane] = __reduce_add_sync(all, lane) + 1000 * __reduce_max_sync(all, lane ^ 7);
    out[224 + lane] = __match_any_sync(all, lane / 8);
    out[256 + lane] = (unsigned)__shfl_sync(all, (unsigned long long)lane << 33, 9, 16) +
                      (unsigned)(__shfl_sync(all, (unsigned long long)lane << 33, 9, 16) >> 33);
    if (lane < 16)
        out[288 + lane] = __shfl_xor_sync(0xffffu, lane, 8);
    else
        out[288 + lane] = __ballot_sync(0xffff0000u, lane & 1);
}

static void warp()
{
    unsigned *out = device_array<unsigned>(320);

    KERNEL_LAUNCH(warp_ops, 1, 32, 0, 0, out);
    std::vector<unsigned> h = back(out, 320);
    for (unsigned l = 0; l < 32; l++) {
        MUST(h[l] == 15 && h[32 + l] == (l ^ 6));
        MUST(h[64 + l] == (l < 4 ? l : l - 4) && h[96 + l] == (l < 28 ? l + 4 : l));
        MUST(h[128 + l] == 0x49249249u && h[160 + l] == 1);
        MUST(h[192 + l] == 496 + 31000 && h[224 + l] == 0xffu << l / 8 * 8);
        MUST(h[256 + l] == l / 16 * 16 + 9);
        MUST(h[288 + l] == (l < 16 ? l ^ 8 : 0xaaaa0000u));
    }
}

__global__ void vote(int *out)
{
    int n = __syncthreads_count(threadIdx.x < 40), any = __syncthreads_or(threadIdx.x == 63);
    int all = __syncthreads_and(threadIdx.x < 64), not_all = __syncthreads_and(threadIdx.x < 63);

    out[threadIdx.x] = n + 100 * any + 1000 * all + 10000 * not_all;
}

static void votes()
{
    int *out = device_array<int>(64);

    KERNEL_LAUNCH(vote, 1, 64, 0, 0, out);
    for (int v : back(out, 64))
        MUST(v == 1140);
}

/* c (16, 8) = a (16, 16) b (16, 8), all through ldmatrix: a by rows, b by rows and transposed. */
__global__ void multiply(float *c, const uint16_t *a, const uint16_t *b)
{
    SHARED_ARRAY(uint16_t, tile, 16 * 24);
    SHARED_DYNAMIC(uint16_t, tile_b);
    int lane = (int)threadIdx.x;
    uint32_t ra[4], rb[4], b0[2];
    float d[4] = { 0, 0, 0, 0 };

    for (int i = lane; i < 32; i += 32) {
        copy_async_16(tile + i / 2 * 24 + i % 2 * 8, a + i * 8);
        copy_async_16(tile_b + i * 8, b + i % 16 * 8, i < 16);
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    ldmatrix_x4<false>(ra, tile + lane % 16 * 24 + lane / 16 * 8);
    ldmatrix_x4<true>(rb, tile_b + lane * 8);
    b0[0] = rb[0];
    b0[1] = rb[1];
    mma_bf16(d, ra, b0);
    for (int i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i] + bf16_to_float((uint16_t)rb[2]);
}

static void tensor_core()
{
    uint16_t a[256], b[128];

    for (int i = 0; i < 256; i++)
        a[i] = float_to_bf16((float)(i * 7 % 23 - 11));
    for (int i = 0; i < 128; i++)
        b[i] = float_to_bf16((float)(i * 5 % 17 - 8) / 4);
    float *c = device_array<float>(128);
    KERNEL_LAUNCH(multiply, 1, 32, 512, 0, c, device_array(256, a), device_array(128, b));
    std::vector<float> host = back(c, 128);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++) {
            float s = 0;
            for (size_t k = 0; k < 16; k++)
                s += bf16_to_float(a[i * 16 + k]) * bf16_to_float(b[k * 8 + j]);
            MUST(host[i * 8 + j] == s);
        }
}

/* Sums 8 tiles, each copied while the one before is summed. */
__global__ void sum_tiles(float *out, const float *x)
{
    SHARED_ARRAY(float, tile, 2 * 128);
    int t = (int)threadIdx.x;
    float sum = 0;

    copy_async_16(tile + 4 * t, x + 4 * t);
    copy_async_commit();
    for (int i = 0; i < 8; i++) {
        if (i < 7)
            copy_async_16(tile + (i + 1) % 2 * 128 + 4 * t, x + (i + 1) * 128 + 4 * t);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        for (int j = 0; j < 4; j++)
            sum += tile[i % 2 * 128 + (t * 4 + j + 60) % 128];
        __syncthreads();
    }
    out[t] = sum;
}

static void pipeline()
{
    std::vector<float> x(1024);

    for (size_t i = 0; i < 1024; i++)
        x[i] = (float)(i % 128 + i / 128);
    float *out = device_array<float>(32);
    KERNEL_LAUNCH(sum_tiles, 1, 32, 0, 0, out, device_array(1024, x.data()));
    std::vector<float> host = back(out, 32);
    for (size_t t = 0; t < 32; t++) {
        float sum = 4 * 28;
        for (size_t j = 0; j < 4; j++)
            sum += 8 * (float)((t * 4 + j + 60) % 128);
        MUST(host[t] == sum);
    }
}

__global__ void count_odd(unsigned *n, int *largest)
{
    if (threadIdx.x & 1)
        atomicAdd(n, 1u);
    atomicMax(largest, (int)threadIdx.x);
}

static void atomics()
{
    unsigned zero = 0, *n = device_array(1, &zero);
    int none = -1, *largest = device_array(1, &none);

    KERNEL_LAUNCH(count_odd, 3, 64, 0, 0, n, largest);
    MUST(back(n, 1)[0] == 96 && back(largest, 1)[0] == 63);
}

static void halves()
{
    for (unsigned h = 0; h < 65536; h++) {
        float x = f16_to_float((uint16_t)h), y = bf16_to_float((uint16_t)h);
        MUST(x != x || float_to_f16(x) == h);
        MUST(y != y || float_to_bf16(y) == h);
    }
    MUST(f16_to_float(0x3c00) == 1 && f16_to_float(0xc500) == -5 && f16_to_float(1) == 0x1p-24f);
    MUST(float_to_f16(2049.0f) == float_to_f16(2048.0f) && float_to_f16(2051.0f) == float_to_f16(2052.0f));
    MUST(float_to_f16(65519.0f) == 0x7bff && float_to_f16(65520.0f) == 0x7c00);
    MUST(float_to_bf16(1.00390625f) == 0x3f80 && float_to_bf16(1.01171875f) == 0x3f82);
    MUST(pack_bf16(1, 2) == 0x40003f80u);
}

const struct test right_tests[] = {
    { "indices", indices, NULL, NULL },
    { "sum", sum, NULL, NULL },
    { "warp", warp, NULL, NULL },
    { "votes", votes, NULL, NULL },
    { "atomics", atomics, NULL, NULL },
    { "halves", halves, NULL, NULL },
    { "tensor core", tensor_core, NULL, NULL },
    { "pipeline", pipeline, NULL, NULL },
    { NULL, NULL, NULL, NULL },
};

/* emulator.h - a CUDA device played by one thread of the host: what the emulated headers need of it.
 *
 * Not CUDA's interface, which is in the headers of CUDA's names beside this file. Test only: these
 * headers let g++ compile the .cu files of kernels/cuda/ unchanged.
 *
 * Every CUDA thread of a block is a fiber that runs until it waits. Blocks run one after another, in an order of their
 * own. A kernel that breaks a rule (a barrier that not all threads reach, misaligned or foreign addresses, copies never
 * waited for, too much shared memory) ends the process with a sentence and what each thread waits for.
 *
 * Environment, read at first use:
 *   EMU_ORDER   forward (default), reverse, random:SEED: the order of blocks, warps and lanes
 *   EMU_ASYNC   late (default): asynchronous copies happen when they are waited for; eager: at once; random: either
 * and what emulated_runtime.cpp says.
 */
#ifndef EVP_EMULATOR_H
#define EVP_EMULATOR_H

#include <stddef.h>
#include <stdint.h>
#include <functional>
#include <memory>

struct CUtensorMap;
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

#ifdef EMU_TSAN
extern "C" void __tsan_ignore_thread_begin();
extern "C" void __tsan_ignore_thread_end();
#endif

namespace emu
{

/* While there is one, the thread sanitizer does not take what its library does for vectors for accesses of a thread. */
struct unseen {
    unseen()
    {
#ifdef EMU_TSAN
        __tsan_ignore_thread_begin();
#endif
    }
    ~unseen()
    {
#ifdef EMU_TSAN
        __tsan_ignore_thread_end();
#endif
    }
};

/* A line of a kernel: that of the caller, as a default argument. */
struct place {
    const char *file;
    int line;

    static constexpr place here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return { file, line };
    }
};
#define EMU_HERE emu::place here = emu::place::here()

struct thread {
    uint3 index;
    int lane, warp;
    unsigned n_barriers, n_meetings; // that it has left: barriers, and operations of the whole warp
    unsigned n_arrivals;             // at phases
};
extern struct thread *current; // the thread that runs

struct block {
    uint3 index;
    dim3 size, grid;
    unsigned number; // of the grid
};
extern struct block block; // the block that runs

enum { MAX_THREADS = 1024, WARP_WORDS = 10 };

/* Numbers of a warp: what each lane brought and takes. */
struct warp_words {
    unsigned mask; // lanes that take part
    uint32_t in[32][WARP_WORDS], out[32][WARP_WORDS];
};

/* Waits until all lanes of `mask` are here; the last one calls combine(). Gives this lane's out, which holds until
 * its next warp operation. `what` names the operation. */
struct warp_op {
    const char *what;
    void (*combine)(struct warp_words *);
};
const uint32_t *warp_do(const struct warp_op *op, unsigned mask, const uint32_t *in, int n_words, place here);

enum vote { VOTE_NONE, VOTE_COUNT };
/* Waits until all threads of the block are here; VOTE_COUNT: how many brought a predicate that is not 0. */
int barrier(enum vote vote, int predicate, place here);

/* The block's shared memory of this name, the same for all threads; NULL: the dynamic part. */
void *shared_memory(const void *name, size_t bytes);

void async_copy(void *dst, const void *src, bool valid, place here);
void async_commit();
void async_wait(int n_left);
/* Does what is asynchronous happen at once this time, by EMU_ASYNC? */
bool happens_now();
/* Row of an ldmatrix: 16 aligned bytes of shared memory. */
void check_matrix_row(const void *row, place here);

/* Waits until another thread calls wake_at(at). learn_from: what it did before is seen by this thread. */
void sleep_at(const void *at, const char *doing, place here);
void wake_at(const void *at);
void learn_from(const void *at);
/* For the sanitizers: this thread reads, or writes, 16 bytes. */
void tell_of_unit(const void *at, bool writes);

/* The device's compute capability, as 90. */
int device_sm();

/* emulator_phases.cpp: barriers of phases, copies of boxes, and what products and boxes may use. */
void must_be_hopper(const char *what, place here);
void phase_init(uint64_t *at, int n, place here);
void phase_arrive(uint64_t *at, place here);
void phase_arrive_bytes(uint64_t *at, int bytes, place here);
void phase_wait(uint64_t *at, unsigned parity, place here);
void copy_box(void *to, const ::CUtensorMap *map, int column, int row, uint64_t *full, place here);
void clear_unit(void *at, place here);
/* A copy to 16 bytes of shared memory begins, and is waited for; what is waited for is fenced. */
void copy_begins(const void *at);
void copy_ends(const void *at);
void fence_async();
const char *why_unreadable(size_t offset); // in shared memory; NULL: it may be read
void begin_phases(int n_threads);
void end_phases();

/* emulator_hopper.cpp: products of warpgroups. */
uint64_t product_tile(const void *at, int panel_bytes, place here);
struct group_product {
    int n;             // columns of the result
    bool add;          // to what is there
    uint64_t tile, b;  // of product_tile(); tile: the left operand, where `a` is NULL
    const uint32_t *a; // 4 registers
    float *d;          // n / 2 registers
};
void product_fence(const void *at, size_t bytes); // registers that the next products use
void products_fence(place here);
void product_start(struct group_product p, place here);
void product_commit(place here);
void product_named(const void *at, size_t bytes); // by the wait that comes now
void product_wait(int n_left, place here);
void set_registers(int n, bool more, place here);
void begin_products(int n_threads);
void end_products();

/* Ends the process: "KERNEL, block (x, y, z): message" and what the threads wait for. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A kernel with its arguments. */
struct kernel_call {
    size_t bytes; // of what is derived from it
    virtual void run() = 0;
    virtual ~kernel_call()
    {
    }
};

/* A launch that the runtime has accepted. */
struct kernel_launch {
    const char *name;
    dim3 grid, block;
    size_t shared_bytes;
    std::shared_ptr<struct kernel_call> call;
};
void run_kernel(const struct kernel_launch *launch);

/* Is it of the running thread alone: its variables, or the kernel's arguments? Is it in its block's shared memory? */
bool is_own(const char *at);
bool is_shared(const char *at);
/* Are all bytes in one shared array? Where shared memory begins: at a multiple of 1,024. */
bool in_shared(const void *at, size_t bytes);
char *shared_begin();

/* For the handler of faults: what runs now, "" on the host. */
void describe_thread(char *text, size_t cap);

} // namespace emu

#endif

/* emulated_runtime.h - what the two files of the emulated runtime and the emulated cublasLt share. Not for .cu files.
 */
#ifndef EVP_EMULATED_RUNTIME_H
#define EVP_EMULATED_RUNTIME_H

#include "tests/cuda/emulated/cuda_runtime.h"

#include <string>

namespace emu
{

struct host_range {
    const char *at; // NULL: none
    size_t bytes;
};

cudaError_t remember(cudaError_t code); // for cudaGetLastError()
cudaError_t usable();                   // cudaSuccess, or why the device cannot be used
cudaError_t injected(const char *what); // what EMU_FAIL says of the next alloc, copy, launch or wait
size_t device_memory();                 // in all
void count(const char *what, unsigned long n);

cudaError_t run_stream(cudaStream_t stream);
cudaError_t run_everything();
void queue_copy(const char *name, std::function<void()> run, struct host_range uses, cudaStream_t stream);
/* The queued copy that uses a part of it; NULL: none. */
const char *queued_use(struct host_range r);

/* Device memory may be touched from open to close. check looks at the guards after `name` ran. */
void open_memory();
void check_memory(const char *name);
void close_memory();
void watch_faults();

#ifdef EMU_RACE
/* emulated_race.cpp: an access of the running thread, by code at `from`; before and after a launch. */
enum access { READ, WRITE, ATOMIC };
void access(const void *at, size_t bytes, enum access kind, const void *from);
/* A phase learns what this thread knows and did; when it ends, threads that wait for it learn that. A block forgets. */
void phase_learns(const void *at);
void phase_ends(const void *at);
void thread_learns(const void *at);
void forget_phases();
void begin_races();
void end_races(const char *kernel);
#endif

} // namespace emu

/* Most calls of the runtime begin with it: they fail at once where there is no device. */
#define MUST_BE_USABLE()                                                                                               \
    do {                                                                                                               \
        cudaError_t code_ = emu::usable();                                                                             \
        if (code_ != cudaSuccess)                                                                                      \
            return emu::remember(code_);                                                                               \
    } while (0)

#endif

#ifndef CALLCOUNT_H
#define CALLCOUNT_H

#include <stdint.h>

/// The number of calls made by the threads that read from sockets.
struct call_count {
    /// Socket reads that returned data.
    uint64_t reads;
    /// Calls of malloc, calloc, realloc and related functions, from any code.
    uint64_t allocations;
    /// Acquisitions of pthread mutexes and read-write locks, including attempts.
    uint64_t locks;
    /// Writes to files.
    uint64_t writes;
};

/// Returns the sums over all threads that have read from a socket, counted from each thread's first such read.
struct call_count call_count_now(void);

#endif

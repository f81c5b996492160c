#ifndef CALLCOUNT_H
#define CALLCOUNT_H

#include <stdint.h>

/// What the threads that read from sockets have called so far.
struct call_count {
    /// Reads from sockets that brought something.
    uint64_t reads;
    /// malloc, calloc, realloc and their kin, whoever calls them.
    uint64_t allocations;
    /// pthread mutexes and read-write locks, taken or tried.
    uint64_t locks;
    /// Writes to files.
    uint64_t writes;
};

/// Sums over all threads that have read from a socket at least once, from their first such read on.
struct call_count call_count_now(void);

#endif

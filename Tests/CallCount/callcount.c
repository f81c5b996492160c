// Counts calls to the C library. The definitions in a program take precedence over those in shared libraries, so calls
// from libcurl and the Swift runtime also arrive here. A sanitizer intercepts the same calls itself, and then nothing
// is counted.
#define _GNU_SOURCE
#include "callcount.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#define THREADS 256

struct counts {
    _Atomic uint64_t reads, allocations, locks, writes;
};

static struct counts all[THREADS];
static atomic_int threads;
// Initial-exec TLS model: a thread-local variable whose first use calls malloc could not count malloc.
static __thread struct counts *mine __attribute__((tls_model("initial-exec")));

// Each thread has its own counters and is their only writer, so a count costs almost nothing.
#define COUNT(what) \
    do { \
        if (mine != NULL) \
            atomic_store_explicit( \
                &mine->what, atomic_load_explicit(&mine->what, memory_order_relaxed) + 1, memory_order_relaxed); \
    } while (0)

struct call_count call_count_now(void) {
    struct call_count sum = {0, 0, 0, 0};
    int count = atomic_load(&threads);
    for (int index = 0; index < count && index < THREADS; index++) {
        sum.reads += atomic_load_explicit(&all[index].reads, memory_order_relaxed);
        sum.allocations += atomic_load_explicit(&all[index].allocations, memory_order_relaxed);
        sum.locks += atomic_load_explicit(&all[index].locks, memory_order_relaxed);
        sum.writes += atomic_load_explicit(&all[index].writes, memory_order_relaxed);
    }
    return sum;
}

#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

// MARK: Reads and writes

static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_lock)(pthread_mutex_t *);
static int (*real_trylock)(pthread_mutex_t *);
static int (*real_rdlock)(pthread_rwlock_t *);
static int (*real_wrlock)(pthread_rwlock_t *);

__attribute__((constructor)) static void find(void) {
    real_recv = (ssize_t(*)(int, void *, size_t, int))real("recv");
    real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))real("pwrite64");
    real_trylock = (int (*)(pthread_mutex_t *))real("pthread_mutex_trylock");
    real_rdlock = (int (*)(pthread_rwlock_t *))real("pthread_rwlock_rdlock");
    real_wrlock = (int (*)(pthread_rwlock_t *))real("pthread_rwlock_wrlock");
    real_lock = (int (*)(pthread_mutex_t *))real("pthread_mutex_lock");
}

ssize_t recv(int socket, void *space, size_t size, int flags) {
    ssize_t count = real_recv(socket, space, size, flags);
    if (count > 0) {
        if (mine == NULL) {
            int error = errno, index = atomic_fetch_add(&threads, 1);
            if (index < THREADS) mine = &all[index];
            errno = error;
        }
        COUNT(reads);
    }
    return count;
}

static ssize_t write_at(int file, const void *bytes, size_t size, off_t offset) {
    COUNT(writes);
    return real_pwrite(file, bytes, size, offset);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) { return write_at(file, bytes, size, offset); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t offset) { return write_at(file, bytes, size, offset); }

// MARK: Locks

// Until the constructor has run, the program has only one thread.
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    COUNT(locks);
    return real_lock == NULL ? 0 : real_lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    COUNT(locks);
    return real_trylock == NULL ? 0 : real_trylock(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    COUNT(locks);
    return real_rdlock == NULL ? 0 : real_rdlock(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    COUNT(locks);
    return real_wrlock == NULL ? 0 : real_wrlock(lock);
}

// MARK: Memory

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    COUNT(allocations);
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    COUNT(allocations);
    return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
    COUNT(allocations);
    return __libc_realloc(memory, size);
}
void *memalign(size_t alignment, size_t size) {
    COUNT(allocations);
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *memory = made;
    return 0;
}

#endif

// Counts the allocations of a program into which it is preloaded, and writes their number to the file that
// DLD_ALLOCATIONS names when the program ends. Processes that it forks write nothing.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_ulong count;
static pid_t counted;

// glibc's own functions. They exist before dlsym(3), which allocates, could find those of another library.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void note(void) { atomic_fetch_add_explicit(&count, 1, memory_order_relaxed); }

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
    note();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) { return EINVAL; }
    void *found = memalign(alignment, size);
    if (found == NULL) { return ENOMEM; }
    *block = found;
    return 0;
}

// valgrind 3.19 crashes in sigsuspend(2), with which the main thread waits for the end. ppoll(2) waits like it.
int sigsuspend(const sigset_t *mask) { return ppoll(NULL, 0, NULL, mask); }

__attribute__((constructor)) static void begin(void) { counted = getpid(); }

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("DLD_ALLOCATIONS");
    if (path == NULL || getpid() != counted) { return; }
    FILE *file = fopen(path, "we");
    if (file == NULL) { return; }
    if (fprintf(file, "%lu\n", atomic_load(&count)) < 0) { perror(path); }
    if (fclose(file) != 0) { perror(path); }
}

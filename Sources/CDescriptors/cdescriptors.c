#define _GNU_SOURCE
#include "cdescriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

// The number of reserved descriptors. libdispatch closes the descriptor of one check before the next check needs one.
// The others make up for descriptors that other threads take in the meantime.
#define KEPT 8
#define NONE (-1)

static _Atomic int kept[KEPT];
static atomic_bool is_keeping;

static int open_system(const char *path, int flags, mode_t mode) {
    return openat(AT_FDCWD, path, flags, mode);
}

static void refill(void) {
    for (int i = 0; i < KEPT; i++) {
        if (atomic_load(&kept[i]) != NONE) continue;
        // /dev/null reads as an empty file, which libdispatch takes for an idle thread.
        int fd = open_system("/dev/null", O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0) return;
        int none = NONE;
        if (!atomic_compare_exchange_strong(&kept[i], &none, fd)) (void)close(fd); // opened for reading only
    }
}

static int take(void) {
    for (int i = 0; i < KEPT; i++) {
        int fd = atomic_exchange(&kept[i], NONE);
        if (fd != NONE) return fd;
    }
    errno = EMFILE;
    return -1;
}

// Whether a path has the form "/proc/TID/stat".
static bool is_look(const char *path) {
    if (strncmp(path, "/proc/", 6) != 0) return false;
    const char *rest = path + 6;
    size_t digits = strspn(rest, "0123456789");
    return digits > 0 && strcmp(rest + digits, "/stat") == 0;
}

void cdescriptors_keep(void) {
    for (int i = 0; i < KEPT; i++) atomic_store(&kept[i], NONE);
    refill();
    atomic_store(&is_keeping, true);
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    int fd = open_system(path, flags, mode);
    if (!atomic_load_explicit(&is_keeping, memory_order_relaxed) || !is_look(path)) return fd;
    if (fd >= 0) {
        refill();
        return fd;
    }
    return errno == EMFILE || errno == ENFILE ? take() : fd;
}

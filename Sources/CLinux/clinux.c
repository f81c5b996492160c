#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

int linux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

static int control(int epoll, int operation, int fd, uint32_t mask, uint64_t tag) {
    struct epoll_event event = {.events = mask, .data.u64 = tag};
    return epoll_ctl(epoll, operation, fd, &event);
}

int linux_epoll_add(int epoll, int fd, uint32_t mask, uint64_t tag) {
    return control(epoll, EPOLL_CTL_ADD, fd, mask, tag);
}

int linux_epoll_change(int epoll, int fd, uint32_t mask, uint64_t tag) {
    return control(epoll, EPOLL_CTL_MOD, fd, mask, tag);
}

int linux_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int linux_epoll_wait(int epoll, struct linux_event *events, int capacity, int timeout) {
    struct epoll_event raw[128];
    if (capacity > 128) capacity = 128;
    int count = epoll_wait(epoll, raw, capacity, timeout);
    for (int i = 0; i < count; i++) {
        events[i].mask = raw[i].events;
        events[i].tag = raw[i].data.u64;
    }
    return count;
}

int linux_eventfd(int semaphore) {
    return eventfd(0, EFD_CLOEXEC | (semaphore ? EFD_SEMAPHORE : EFD_NONBLOCK));
}

int linux_syncfs(int fd) { return syncfs(fd); }

// What openat2 does in one call, a component at a time, none of them a link: slower, and as safe, since each step
// starts from a descriptor that is held.
int linux_openat_stepwise(int dirfd, const char *path, int flags, mode_t mode) {
    char buffer[4096];
    size_t length = strlen(path);
    if (length >= sizeof buffer) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (path[0] == '/') {
        errno = EXDEV;
        return -1;
    }
    memcpy(buffer, path, length + 1);
    int base = dirfd;
    char *rest = NULL;
    char *component = strtok_r(buffer, "/", &rest);
    if (component == NULL) component = ".";
    for (;;) {
        char *next = strtok_r(NULL, "/", &rest);
        int fd = -1;
        if (strcmp(component, "..") == 0) {
            errno = EXDEV;
        } else {
            int step = next ? O_PATH | O_DIRECTORY : flags;
            do {
                fd = openat(base, component, step | O_NOFOLLOW | O_CLOEXEC, mode);
            } while (fd < 0 && errno == EINTR);
        }
        int error = errno;
        if (base != dirfd) close(base);
        errno = error;
        if (fd < 0 || next == NULL) return fd;
        base = fd;
        component = next;
    }
}

int linux_openat_beneath(int dirfd, const char *path, int flags, mode_t mode) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (uint64_t)(flags | O_CLOEXEC);
    how.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long fd;
    do {
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    // Kernels before 5.6 lack the call, and the filters of some containers hide it.
    if (fd < 0 && errno == ENOSYS) return linux_openat_stepwise(dirfd, path, flags, mode);
    return (int)fd;
}

int linux_rename_noreplace(int olddir, const char *oldpath, int newdir, const char *newpath) {
    return renameat2(olddir, oldpath, newdir, newpath, RENAME_NOREPLACE);
}

int linux_fsetxattr(int fd, const char *name, const void *value, size_t size) {
    return fsetxattr(fd, name, value, size, 0);
}

ssize_t linux_fgetxattr(int fd, const char *name, void *value, size_t size) {
    return fgetxattr(fd, name, value, size);
}

int linux_set_modification_time(int fd, int64_t seconds) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};
    return futimens(fd, times);
}

int linux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

int linux_ext4_shutdown(int fd) {
    uint32_t flags = 2; // EXT4_GOING_FLAGS_NOLOGFLUSH
    return ioctl(fd, _IOR('X', 125, uint32_t), &flags);
}

int linux_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

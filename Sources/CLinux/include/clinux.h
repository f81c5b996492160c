// System calls that Glibc's Swift module lacks, under names of our own.
#ifndef DLD_CLINUX_H
#define DLD_CLINUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// One readiness event, unpacked: epoll_event is packed on x86-64, which Swift cannot address safely.
struct linux_event {
    uint32_t mask;
    uint64_t tag;
};

#define LINUX_EPOLLIN 0x001u
#define LINUX_EPOLLOUT 0x004u
#define LINUX_EPOLLERR 0x008u
#define LINUX_EPOLLHUP 0x010u

int linux_epoll_create(void);
int linux_epoll_add(int epoll, int fd, uint32_t mask, uint64_t tag);
int linux_epoll_change(int epoll, int fd, uint32_t mask, uint64_t tag);
int linux_epoll_remove(int epoll, int fd);
// timeout in milliseconds, -1 for ever; at most 128 events a call.
int linux_epoll_wait(int epoll, struct linux_event *events, int capacity, int timeout);

int linux_eventfd(int semaphore);

int linux_syncfs(int fd);
// An empty file that is nowhere but in memory, or -1.
int linux_memory_file(const char *name);

// openat2 beneath dirfd: no symlink, no magic link, no step outside.
int linux_openat_beneath(int dirfd, const char *path, int flags, mode_t mode);

// The same without openat2: what linux_openat_beneath falls back to.
int linux_openat_stepwise(int dirfd, const char *path, int flags, mode_t mode);

// renameat2 with RENAME_NOREPLACE.
int linux_rename_noreplace(int olddir, const char *oldpath, int newdir, const char *newpath);

int linux_fsetxattr(int fd, const char *name, const void *value, size_t size);
ssize_t linux_fgetxattr(int fd, const char *name, void *value, size_t size);

// Sets the time of the last change, and leaves that of the last access.
int linux_set_modification_time(int fd, int64_t seconds);

int linux_set_thread_name(const char *name);

// ioctl EXT4_IOC_SHUTDOWN without flushing the journal: the next mount finds what a power cut leaves.
int linux_ext4_shutdown(int fd);

#endif

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stddef.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

// struct sched_attr of sched_setattr(2). The kernel's header for it cannot be used beside <sched.h> of glibc 2.36.
struct sched_attributes {
    uint32_t size, sched_policy;
    uint64_t sched_flags;
    int32_t sched_nice;
    uint32_t sched_priority;
    uint64_t sched_runtime, sched_deadline, sched_period;
};

int linux_set_time_slice(uint64_t nanoseconds) {
    struct sched_attributes attributes = {0};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return -1;
    if (attributes.sched_policy != SCHED_OTHER) return 0;
    attributes.sched_runtime = nanoseconds;
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

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

int linux_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

int linux_eventfd(int semaphore) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | (semaphore ? EFD_SEMAPHORE : 0));
}

uint64_t linux_socket_cookie(int fd) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

uint64_t linux_tcp_acknowledged(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    size_t end = offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
    return size >= end ? info.tcpi_bytes_acked : 0;
}

uint64_t linux_tcp_received(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    size_t end = offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
    return size >= end ? info.tcpi_bytes_received : 0;
}

int linux_tcp_limit_unsent(int fd, unsigned int bytes) {
    return setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

int linux_local_port(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return -1;
    switch (address.ss_family) {
    case AF_INET: return ntohs(((const struct sockaddr_in *)&address)->sin_port);
    case AF_INET6: return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
    default: return -1;
    }
}

int linux_peek(int fd) {
    char byte;
    ssize_t count;
    do count = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count > 0) return 1;
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

int linux_clock_watch_arm(int fd) {
    struct itimerspec setting = {0};
    // A time that is never reached.
    setting.it_value.tv_sec = (time_t)INT32_MAX * 64;
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, NULL);
}

int linux_clock_watch(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd >= 0 && linux_clock_watch_arm(fd) != 0) {
        int error = errno;
        (void)close(fd); // nothing was written to it
        errno = error;
        return -1;
    }
    return fd;
}

int linux_syncfs(int fd) { return syncfs(fd); }

int linux_writeback_check(int fd) { return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE); }

long linux_file_system_type(int fd) {
    struct statfs information;
    return fstatfs(fd, &information) == 0 ? (long)information.f_type : 0;
}

// Does what openat2 does in one call, one path component at a time, and follows no symbolic link. This is slower and
// equally safe, since each step starts from a descriptor that is held open.
int linux_openat_stepwise(int dirfd, const char *path, int flags, uint32_t mode) {
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
        if (base != dirfd) (void)close(base); // O_PATH: nothing was written to it
        errno = error;
        if (fd < 0 || next == NULL) return fd;
        base = fd;
        component = next;
    }
}

int linux_openat_beneath(int dirfd, const char *path, int flags, uint32_t mode) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (uint64_t)(flags | O_CLOEXEC);
    how.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long fd;
    long wait = 1000000; // nanoseconds
    for (;;) {
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN)) break;
        if (errno == EINTR) continue;
        // A rename at the same time may be the reason only where the path leads upwards (openat2(2)). Otherwise it is
        // another program's lease on the file (F_SETLEASE), which may last as long as the system allows.
        if ((strstr(path, "../") == NULL && strcmp(path, "..") != 0) || wait > 16000000) {
            errno = EAGAIN;
            break;
        }
        struct timespec pause = {0, wait};
        (void)nanosleep(&pause, NULL); // a shorter wait does not matter
        wait *= 2;
    }
    // Kernels before 5.6 lack openat2, and the seccomp filters of some containers block it.
    if (fd < 0 && errno == ENOSYS) return linux_openat_stepwise(dirfd, path, flags, mode);
    return (int)fd;
}

int linux_locked(int dirfd, const char *path) {
    struct statx information;
    int flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
    if (statx(dirfd, path, flags, STATX_MODE, &information) != 0) return LINUX_LOCK_NONE;
    if (information.stx_attributes & STATX_ATTR_IMMUTABLE) return LINUX_LOCK_IMMUTABLE;
    return information.stx_attributes & STATX_ATTR_APPEND ? LINUX_LOCK_APPEND_ONLY : LINUX_LOCK_NONE;
}

int linux_create_unnamed(int dirfd, uint32_t mode) {
    int fd;
    do {
        fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

int linux_open_uncached(int fd) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd); // fits
    return open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

int linux_link_unnamed(int fd, int dirfd, const char *name) {
    // By descriptor alone it needs CAP_DAC_READ_SEARCH or Linux 6.10. Without them the error is ENOENT.
    if (linkat(fd, "", dirfd, name, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOENT) return -1;
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd); // fits
    return linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW);
}

int linux_rename_noreplace(int olddir, const char *oldpath, int newdir, const char *newpath) {
    return renameat2(olddir, oldpath, newdir, newpath, RENAME_NOREPLACE);
}

int linux_fsetxattr(int fd, const char *name, const void *value, size_t size) {
    return fsetxattr(fd, name, value, size, 0);
}

ptrdiff_t linux_fgetxattr(int fd, const char *name, void *value, size_t size) {
    return fgetxattr(fd, name, value, size);
}

int linux_setxattr(const char *path, const char *name, const void *value, size_t size) {
    return setxattr(path, name, value, size, 0);
}

ptrdiff_t linux_getxattr(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size);
}

int linux_openat_name(int dirfd, const char *name) {
    return openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

int linux_peer_groups(int fd, uint32_t *groups, int capacity) {
    socklen_t length = (socklen_t)capacity * (socklen_t)sizeof(gid_t);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0) return -1;
    return (int)(length / sizeof(gid_t));
}

_Static_assert(LINUX_O_PATH == O_PATH, "see open(2)");

const int LINUX_O_DIRECT = O_DIRECT;

union descriptor_space {
    char bytes[CMSG_SPACE(LINUX_MOST_DESCRIPTORS * sizeof(int))];
    struct cmsghdr alignment;
};

ptrdiff_t linux_send_descriptors(int socket, char byte, const int *descriptors, int count) {
    if (count < 1 || count > LINUX_MOST_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    size_t size = (size_t)count * sizeof(int);
    union descriptor_space space = {{0}};
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), descriptors, size);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ptrdiff_t linux_receive_descriptors(int socket, char *byte, int *descriptors, int *count) {
    *count = 0;
    union descriptor_space space;
    struct iovec data = {.iov_base = byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    int total = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        int here = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors + total, CMSG_DATA(header), (size_t)here * sizeof(int));
        total += here;
    }
    if (message.msg_flags & MSG_CTRUNC) {
        for (int i = 0; i < total; i++) (void)close(descriptors[i]); // nothing was written to them
        errno = EMFILE;
        return -1;
    }
    *count = total;
    return received;
}

int linux_fremovexattr(int fd, const char *name) {
    return fremovexattr(fd, name);
}

int linux_set_modification_time(int fd, int64_t seconds) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};
    return futimens(fd, times);
}

int linux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

int linux_unshare_network(void) { return unshare(CLONE_NEWNET); }

int linux_ext4_shutdown(int fd) {
    uint32_t flags = 2; // EXT4_GOING_FLAGS_NOLOGFLUSH
    return ioctl(fd, _IOR('X', 125, uint32_t), &flags);
}

#define SAME(name) _Static_assert((int)LINUX_##name == (int)name, #name)
SAME(NLMSG_ERROR);
SAME(NLMSG_DONE);
SAME(NLMSG_OVERRUN);
SAME(NLM_F_DUMP_INTR);
SAME(RTM_NEWLINK);
SAME(RTM_DELLINK);
SAME(RTM_GETLINK);
SAME(RTM_NEWADDR);
SAME(RTM_DELADDR);
SAME(RTM_GETADDR);
SAME(RTM_NEWROUTE);
SAME(RTM_DELROUTE);
SAME(RTM_GETROUTE);
SAME(IFA_ADDRESS);
SAME(IFA_LOCAL);
SAME(IFA_FLAGS);
SAME(IFA_F_OPTIMISTIC);
SAME(IFA_F_DADFAILED);
SAME(IFA_F_TENTATIVE);
SAME(RTA_DST);
SAME(RTA_OIF);
SAME(RTA_GATEWAY);
SAME(RTA_MULTIPATH);
SAME(RTA_TABLE);
SAME(RTN_UNICAST);
SAME(RT_TABLE_LOCAL);
SAME(RT_SCOPE_UNIVERSE);
SAME(RT_SCOPE_SITE);
SAME(RTNH_F_DEAD);
SAME(RTNH_F_LINKDOWN);
SAME(RTM_F_CLONED);

int linux_netlink_route(int listens) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -1;
    struct sockaddr_nl own = {.nl_family = AF_NETLINK};
    if (listens) {
        own.nl_groups =
            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    }
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0) {
        int error = errno;
        (void)close(fd); // nothing was written to it
        errno = error;
        return -1;
    }
    return fd;
}

int linux_netlink_dump(int fd, uint16_t type, uint32_t sequence) {
    struct {
        struct nlmsghdr header;
        struct rtgenmsg body;
    } request;
    memset(&request, 0, sizeof request);
    request.header.nlmsg_len = sizeof request;
    request.header.nlmsg_type = type;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.header.nlmsg_seq = sequence;
    request.body.rtgen_family = AF_UNSPEC;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t sent;
    do {
        sent = sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&kernel, sizeof kernel);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

ptrdiff_t linux_netlink_receive(int fd, void *space, size_t size) {
    struct sockaddr_nl sender = {0};
    struct iovec part = {.iov_base = space, .iov_len = size};
    struct msghdr message = {.msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &part, .msg_iovlen = 1};
    ssize_t count;
    do {
        count = recvmsg(fd, &message, 0);
    } while (count < 0 && errno == EINTR);
    if (count >= 0 && (message.msg_namelen != sizeof sender || sender.nl_pid != 0)) return 0;
    if (count >= 0 && (message.msg_flags & MSG_TRUNC)) {
        errno = ENOBUFS;
        return -1;
    }
    return count;
}
int linux_process_descriptor(int process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int linux_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

void linux_give_memory_back(void) {
    // The result states whether any memory was released.
    (void)malloc_trim(0);
}

static int release_pages(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused; // parameters of dl_iterate_phdr(3)
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        // Writable segments have relocated pages, which exist in memory alone.
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
        uintptr_t begin = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        // The first and the last page may belong to another segment too.
        uintptr_t first = (begin + page - 1) / page * page, end = (begin + segment->p_memsz) / page * page;
        if (first < end) (void)madvise((void *)first, end - first, MADV_DONTNEED); // on failure the pages stay
    }
    return 0;
}

void linux_release_program_pages(void) {
    (void)dl_iterate_phdr(release_pages, NULL); // returns what release_pages returns
}

uint64_t linux_tcp_unread(int fd) {
    int count = 0;
    return ioctl(fd, SIOCINQ, &count) == 0 && count > 0 ? (uint64_t)count : 0;
}

int linux_device_name(int fd, char *name, size_t size) {
    struct statx information;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &information) != 0) return -1;
    int count = snprintf(name, size, "%u:%u", information.stx_dev_major, information.stx_dev_minor);
    if (count > 0 && (size_t)count < size) return 0;
    errno = EOVERFLOW;
    return -1;
}

// The kernel's FILEID_BTRFS_WITHOUT_PARENT (include/linux/exportfs.h). FUSE and overlayfs use other numbers.
enum { BTRFS_HANDLE = 0x4d };

int linux_is_on_disk(int fd) {
    struct statx information;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &information) != 0) return -1;
    // File systems without a device of their own have the major number 0.
    if (information.stx_dev_major != 0) return 1;
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } room;
    memset(&room, 0, sizeof room);
    room.handle.handle_bytes = MAX_HANDLE_SZ;
    int mount = 0;
    if (name_to_handle_at(fd, "", &room.handle, &mount, AT_EMPTY_PATH) != 0) {
        // The file system has no file handles.
        return errno == EOPNOTSUPP || errno == EOVERFLOW ? 0 : -1;
    }
    return room.handle.handle_type == BTRFS_HANDLE;
}

int64_t linux_birth(int fd) {
    struct statx information;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &information) != 0) return -1;
    if (!(information.stx_mask & STATX_BTIME)) return -1;
    return (int64_t)information.stx_btime.tv_sec * 1000000000 + information.stx_btime.tv_nsec;
}

// System calls that Glibc's Swift module lacks, under names of our own.
#ifndef DLD_CLINUX_H
#define DLD_CLINUX_H

#include <stddef.h>
#include <stdint.h>

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

// A connection that waits at a listening socket, close-on-exec and without blocking, or -1 (accept4(2)).
int linux_accept(int fd);

// A number that no other socket of this boot has (SO_COOKIE), or 0 where the kernel does not tell.
uint64_t linux_socket_cookie(int fd);

// Bytes that the peer of a TCP connection has acknowledged since its beginning, or 0 where the kernel does not tell.
uint64_t linux_tcp_acknowledged(int fd);

// Bytes that a TCP connection has received since its beginning, or 0 where the kernel does not tell.
uint64_t linux_tcp_received(int fd);

// Bytes that lie there and have not been read; 0 where the kernel does not say.
uint64_t linux_tcp_unread(int fd);

// Bytes that the kernel keeps of what is to be sent, beyond what is on its way (TCP_NOTSENT_LOWAT).
int linux_tcp_limit_unsent(int fd, unsigned int bytes);

// A timerfd that never expires, whose read fails with ECANCELED once CLOCK_REALTIME was set; it is armed again for the
// next time.
int linux_clock_watch(void);
int linux_clock_watch_arm(int fd);

int linux_syncfs(int fd);

// Waits until what is on its way to the disk is there, begins nothing, and fails where some of the file's bytes did not
// get there since it was last asked.
int linux_writeback_check(int fd);

// f_type of statfs(2); 0 where it cannot be told.
long linux_file_system_type(int fd);

// An empty file that is nowhere but in memory, or -1.
int linux_memory_file(const char *name);

// openat2 beneath dirfd: no symlink, no magic link, no step outside.
int linux_openat_beneath(int dirfd, const char *path, int flags, uint32_t mode);

// The same without openat2: what linux_openat_beneath falls back to.
int linux_openat_stepwise(int dirfd, const char *path, int flags, uint32_t mode);

// What keeps even root from changing the entry `path` of a directory, or the directory itself where `path` is empty:
// 1 where it is immutable (chattr +i), 2 where it is append-only (chattr +a), 0 otherwise and where it cannot be told.
int linux_locked(int dirfd, const char *path);

// renameat2 with RENAME_NOREPLACE.
int linux_rename_noreplace(int olddir, const char *oldpath, int newdir, const char *newpath);

int linux_fsetxattr(int fd, const char *name, const void *value, size_t size);
ptrdiff_t linux_fgetxattr(int fd, const char *name, void *value, size_t size);
int linux_fremovexattr(int fd, const char *name);
// By path, links followed: also for a descriptor that was opened with O_PATH, by its name in /proc/self/fd.
int linux_setxattr(const char *path, const char *name, const void *value, size_t size);
ptrdiff_t linux_getxattr(const char *path, const char *name, void *value, size_t size);

// openat(2) with O_PATH and O_NOFOLLOW: what a name leads to, be it a link, without opening it.
int linux_openat_name(int dirfd, const char *name);

// Supplementary groups of the peer of a Unix socket at the moment that it connected (SO_PEERGROUPS, unix(7)): up to
// capacity of them. Returns how many there are, or -1.
int linux_peer_groups(int fd, uint32_t *groups, int capacity);

#define LINUX_O_PATH 010000000

// As many descriptors as one message takes (SCM_MAX_FD of the kernel's include/net/scm.h).
#define LINUX_MOST_DESCRIPTORS 253

// Sends one byte with `count` open descriptors over a Unix stream socket (SCM_RIGHTS, unix(7)), without waiting.
// Returns 1, or -1.
ptrdiff_t linux_send_descriptors(int socket, char byte, const int *descriptors, int count);

// Receives one byte and the descriptors that came with it, without waiting. `descriptors` has room for
// LINUX_MOST_DESCRIPTORS; they are close-on-exec. Where some of them could not be delivered, all are closed and the
// call fails with EMFILE. Returns 1, 0 at the end of the stream, or -1.
ptrdiff_t linux_receive_descriptors(int socket, char *byte, int *descriptors, int *count);

// Sets the time of the last change, and leaves that of the last access.
int linux_set_modification_time(int fd, int64_t seconds);

int linux_set_thread_name(const char *name);

// Returns the pages that the allocator keeps free to the system.
void linux_give_memory_back(void);

// rtnetlink(7): messages, attributes and values, checked against the kernel's header in clinux.c.
#define LINUX_NLMSG_ERROR 2
#define LINUX_NLMSG_DONE 3
#define LINUX_NLMSG_OVERRUN 4
#define LINUX_NLM_F_DUMP_INTR 0x10
#define LINUX_RTM_NEWLINK 16
#define LINUX_RTM_DELLINK 17
#define LINUX_RTM_GETLINK 18
#define LINUX_RTM_NEWADDR 20
#define LINUX_RTM_DELADDR 21
#define LINUX_RTM_GETADDR 22
#define LINUX_RTM_NEWROUTE 24
#define LINUX_RTM_DELROUTE 25
#define LINUX_RTM_GETROUTE 26
#define LINUX_IFA_ADDRESS 1
#define LINUX_IFA_LOCAL 2
#define LINUX_IFA_FLAGS 8
#define LINUX_IFA_F_OPTIMISTIC 0x04u
#define LINUX_IFA_F_DADFAILED 0x08u
#define LINUX_IFA_F_TENTATIVE 0x40u
#define LINUX_RTA_DST 1
#define LINUX_RTA_OIF 4
#define LINUX_RTA_GATEWAY 5
#define LINUX_RTA_MULTIPATH 9
#define LINUX_RTA_TABLE 15
#define LINUX_RTN_UNICAST 1
#define LINUX_RT_TABLE_LOCAL 255u
#define LINUX_RT_SCOPE_UNIVERSE 0
#define LINUX_RT_SCOPE_SITE 200
#define LINUX_RTNH_F_DEAD 0x01u
#define LINUX_RTNH_F_LINKDOWN 0x10u
#define LINUX_RTM_F_CLONED 0x200u

// A socket of NETLINK_ROUTE that does not block. With listens, the kernel reports on it every change of links,
// addresses and routes.
int linux_netlink_route(int listens);

// Asks for all of what the RTM_GET type stands for; the answer carries the sequence number.
int linux_netlink_dump(int fd, uint16_t type, uint32_t sequence);

// One datagram. Only the kernel's: from another sender it is 0 bytes long. One that did not fit fails with ENOBUFS, as
// one does that the kernel had no room for.
ptrdiff_t linux_netlink_receive(int fd, void *space, size_t size);

// Gives the calling thread a network namespace of its own, with nothing in it but a loopback that is down.
int linux_unshare_network(void);

// ioctl EXT4_IOC_SHUTDOWN without flushing the journal: the next mount finds what a power cut leaves.
int linux_ext4_shutdown(int fd);

// The device of a file's file system as /proc/self/mountinfo writes it, "MAJOR:MINOR", without asking the file system for
// anything (AT_STATX_DONT_SYNC): one that answers no more would keep the caller for ever. 0, or -1 with errno.
int linux_device_name(int fd, char *name, size_t size);

// Whether a file is on a file system that is on a disk of this machine, whatever is mounted where: 1 or 0, or -1 with
// errno. Asks the file system for nothing. What user programs and other machines answer for, and what lies above other
// file systems, has no disk's number; btrfs has none either, and is known by its file handles.
int linux_is_on_disk(int fd);

// When a file was made, in nanoseconds since 1970; -1 where the file system does not say.
int64_t linux_birth(int fd);

#endif

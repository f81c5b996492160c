// Wrappers of the system calls that Swift's Glibc module lacks.
#ifndef DLD_CLINUX_H
#define DLD_CLINUX_H

#include <stddef.h>
#include <stdint.h>

// A readiness event in an unpacked structure. epoll_event is packed on x86-64, and Swift cannot address its members
// safely.
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
// `timeout` is in milliseconds, -1 to wait without limit. A call returns at most 128 events.
int linux_epoll_wait(int epoll, struct linux_event *events, int capacity, int timeout);

int linux_eventfd(int semaphore);

// Sets the time slice that the calling thread asks of the scheduler (sched_setattr(2)), at least 100,000 ns. A thread
// with a short slice runs sooner after it wakes up. Kernels before 6.12 have no such slice and ignore it; a thread with
// another policy than SCHED_OTHER keeps what it has. Returns -1 on failure.
int linux_set_time_slice(uint64_t nanoseconds);

// Accepts a connection from a listening socket, close-on-exec and non-blocking (accept4(2)). Returns -1 on failure.
int linux_accept(int fd);

// Returns a number that no other socket of this boot has (SO_COOKIE); 0 if the kernel does not provide it.
uint64_t linux_socket_cookie(int fd);

// Returns the number of bytes that the peer of a TCP connection has acknowledged since it was established; 0 if the
// kernel does not provide it.
uint64_t linux_tcp_acknowledged(int fd);

// Returns the number of bytes that a TCP connection has received since it was established; 0 if the kernel does not
// provide it.
uint64_t linux_tcp_received(int fd);

// Returns the number of received bytes that have not been read; 0 if the kernel does not provide it.
uint64_t linux_tcp_unread(int fd);

// Limits the number of unsent bytes that the kernel buffers, beyond those in flight (TCP_NOTSENT_LOWAT).
int linux_tcp_limit_unsent(int fd, unsigned int bytes);

// Returns the local port of a socket; -1 if it is not a bound socket of IPv4 or IPv6.
int linux_local_port(int fd);

// Looks at the input of a socket without removing it or waiting. Returns 1 if bytes have arrived, 0 if none have, and -1
// at the end of the stream or after an error.
int linux_peek(int fd);

// Creates a timerfd that never expires. Reading it fails with ECANCELED after CLOCK_REALTIME was set.
// linux_clock_watch_arm re-arms it for the next change.
int linux_clock_watch(void);
int linux_clock_watch_arm(int fd);

int linux_syncfs(int fd);

// Waits until the writeback in progress has completed, and starts none. Fails if some of the file's bytes could not be
// written to the disk since the last check.
int linux_writeback_check(int fd);

// Returns f_type of statfs(2); 0 if it cannot be determined.
long linux_file_system_type(int fd);

// Creates an empty file that exists only in memory. Returns its descriptor, or -1.
int linux_memory_file(const char *name);

// Returns a descriptor that becomes readable when the child process ends (pidfd_open), or -1.
int linux_process_descriptor(int process);

// Opens a path beneath dirfd with openat2. Symbolic links, magic links and paths that leave dirfd are refused.
int linux_openat_beneath(int dirfd, const char *path, int flags, uint32_t mode);

// Does the same without openat2. linux_openat_beneath falls back to it.
int linux_openat_stepwise(int dirfd, const char *path, int flags, uint32_t mode);

// The attributes that keep even root from changing a directory or an entry: `chattr +i` and `chattr +a`.
enum { LINUX_LOCK_NONE = 0, LINUX_LOCK_IMMUTABLE = 1, LINUX_LOCK_APPEND_ONLY = 2 };

// Returns the attribute that keeps even root from changing the entry `path` of a directory, or the directory itself if
// `path` is empty. LINUX_LOCK_NONE also if the attributes cannot be determined.
int linux_locked(int dirfd, const char *path);

// Opens the file of a descriptor again, for writes that bypass the page cache (O_DIRECT, open(2)). Returns the
// descriptor, or -1 if the file system does not support that.
int linux_open_uncached(int fd);

// Creates a file without a name in a directory (O_TMPFILE) and opens it for reading and writing. The umask and the
// directory's default access control list apply to `mode`. The file ends with its last descriptor, unless it is given a
// name. Returns the descriptor, or -1.
int linux_create_unnamed(int dirfd, uint32_t mode);

// Gives a file without a name the name `name` in a directory (linkat). Never replaces: fails with EEXIST.
int linux_link_unnamed(int fd, int dirfd, const char *name);

// Calls renameat2 with RENAME_NOREPLACE.
int linux_rename_noreplace(int olddir, const char *oldpath, int newdir, const char *newpath);

int linux_fsetxattr(int fd, const char *name, const void *value, size_t size);
ptrdiff_t linux_fgetxattr(int fd, const char *name, void *value, size_t size);
int linux_fremovexattr(int fd, const char *name);
// Set and get an attribute by path and follow symbolic links. A descriptor opened with O_PATH can be given by its name
// in /proc/self/fd.
int linux_setxattr(const char *path, const char *name, const void *value, size_t size);
ptrdiff_t linux_getxattr(const char *path, const char *name, void *value, size_t size);

// Calls openat(2) with O_PATH and O_NOFOLLOW. The result refers to the entry itself, even if it is a symbolic link,
// without opening the file.
int linux_openat_name(int dirfd, const char *name);

// Gets the supplementary groups that the peer of a Unix socket had when it connected (SO_PEERGROUPS, unix(7)), at most
// `capacity` of them. Returns their number, or -1.
int linux_peer_groups(int fd, uint32_t *groups, int capacity);

#define LINUX_O_PATH 010000000

// O_DIRECT of open(2), whose number differs between architectures.
extern const int LINUX_O_DIRECT;

// The most descriptors that one message can carry (SCM_MAX_FD in the kernel's include/net/scm.h).
#define LINUX_MOST_DESCRIPTORS 253

// Sends one byte with `count` open descriptors over a Unix stream socket (SCM_RIGHTS, unix(7)). Does not block. Returns
// 1, or -1.
ptrdiff_t linux_send_descriptors(int socket, char byte, const int *descriptors, int count);

// Receives one byte and the descriptors that came with it. Does not block. `descriptors` has room for
// LINUX_MOST_DESCRIPTORS; the received ones are close-on-exec. If some could not be delivered, all of them are closed
// and the call fails with EMFILE. Returns 1, 0 at the end of the stream, or -1.
ptrdiff_t linux_receive_descriptors(int socket, char *byte, int *descriptors, int *count);

// Sets a file's modification time and leaves its access time unchanged.
int linux_set_modification_time(int fd, int64_t seconds);

int linux_set_thread_name(const char *name);

// Returns the allocator's free pages to the system.
void linux_give_memory_back(void);

// Removes the read-only pages of the program and its libraries from this process. They stay in the system's page cache:
// the next access to one of them costs a minor page fault. The kernel maps up to 16 pages for each one that is touched,
// so that a process that has started has mapped much of the program that it does not need while it is idle.
void linux_release_program_pages(void);

// Messages, attributes and values of rtnetlink(7). clinux.c checks them against the kernel's header at compile time.
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

// Opens a non-blocking NETLINK_ROUTE socket. With `listens`, the kernel reports every change of links, addresses and
// routes on it.
int linux_netlink_route(int listens);

// Requests a dump of all objects of the given RTM_GET type. The response carries the sequence number.
int linux_netlink_dump(int fd, uint16_t type, uint32_t sequence);

// Receives one datagram. A datagram that was not sent by the kernel is reported as 0 bytes long. Fails with ENOBUFS if
// the datagram did not fit into `space`, or if the kernel had to drop one for lack of room.
ptrdiff_t linux_netlink_receive(int fd, void *space, size_t size);

// Moves the calling thread into a new network namespace, whose only interface is a loopback interface that is down.
int linux_unshare_network(void);

// Calls the ioctl EXT4_IOC_SHUTDOWN without flushing the journal. The next mount finds the state that a power cut would
// leave.
int linux_ext4_shutdown(int fd);

// Writes the device number of a file's file system as in /proc/self/mountinfo, "MAJOR:MINOR". Sends no request to the
// file system (AT_STATX_DONT_SYNC), since an unresponsive one would block the caller for ever. Returns 0, or -1 with
// errno.
int linux_device_name(int fd, char *name, size_t size);

// Whether a file's file system is on a disk of this machine, whatever is mounted where: 1 or 0, or -1 with errno. Sends
// no request to the file system. File systems of user programs and of other machines, and those stacked on other file
// systems, have no disk's device number. btrfs has none either, and is recognised by the type of its file handles.
int linux_is_on_disk(int fd);

// Returns a file's creation time in nanoseconds since 1970; -1 if the file system does not provide it.
int64_t linux_birth(int fd);

#endif

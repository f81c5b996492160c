#define _GNU_SOURCE
#include "creceiver.h"
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

_Static_assert(CRECEIVER_MOST_FILES == LINUX_MOST_DESCRIPTORS, "a message's");

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000
#endif

// What the daemon asks for. The connection and the child's end of the answers come with it.
struct request {
    int32_t kind;
    uint32_t user;
};

struct child {
    pid_t pid;
    uint32_t user;
};

static void close_all_from(unsigned first) {
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (long fd = first; fd < limit; fd++) (void)close((int)fd); // most of them are not open
}

// MARK: A child

static void look_at(int fd, struct creceiver_file *file) {
    struct statx facts;
    memset(file, 0, sizeof *file);
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &facts) != 0) {
        file->error = errno;
        return;
    }
    if (facts.stx_mask & STATX_MNT_ID) file->mount = facts.stx_mnt_id;
    file->major = facts.stx_dev_major;
    file->minor = facts.stx_dev_minor;
    file->mode = facts.stx_mode;
    file->is_on_disk = linux_is_on_disk(fd);
}

// Sends the files that the daemon wants.
static void pass_on(int answers, const int *files, int count) {
    uint8_t wanted[CRECEIVER_MOST_FILES];
    ssize_t chosen;
    do {
        chosen = recv(answers, wanted, sizeof wanted, 0);
    } while (chosen < 0 && errno == EINTR);
    if (chosen != count) return;
    int passed[CRECEIVER_MOST_FILES];
    int total = 0;
    for (int i = 0; i < count; i++) {
        if (wanted[i]) passed[total++] = files[i];
    }
    // Where nobody listens any more, they are closed with the others.
    if (total > 0) (void)linux_send_descriptors(answers, '\n', passed, total);
}

static void receive(int connection, int answers) {
    // Whatever keeps it: where it can be ended at all, it is.
    (void)alarm(CRECEIVER_SECONDS); // says how long an earlier one had to go
    struct creceiver_report_message report;
    memset(&report, 0, sizeof report);
    int files[CRECEIVER_MOST_FILES];
    char byte = 0;
    int count = 0;
    ptrdiff_t received = linux_receive_descriptors(connection, &byte, files, &count);
    report.error = received < 0 ? errno : 0;
    report.outcome = received > 0 ? CRECEIVER_RECEIVED : received == 0 ? CRECEIVER_CLOSED : CRECEIVER_FAILED;
    report.bytes[0] = (uint8_t)byte;
    report.size = received > 0 ? 1 : 0;
    report.count = count;
    // From here on the client sees the connection's end whatever becomes of this process.
    (void)close(connection); // nothing was written to it
    for (int i = 0; i < count; i++) look_at(files[i], &report.files[i]);
    if (send(answers, &report, sizeof report, MSG_NOSIGNAL) == (ssize_t)sizeof report && count > 0) {
        pass_on(answers, files, count);
    }
    // Before the files, whose closing may keep this process for ever.
    (void)close(answers); // what counts was sent
}

// Takes what comes first out of the connection. Its files are neither looked at nor closed one by one: the end of this
// process closes them.
static void drop(int connection, int answers) {
    struct creceiver_report_message report;
    memset(&report, 0, sizeof report);
    union {
        char bytes[CMSG_SPACE(CRECEIVER_MOST_FILES * sizeof(int))];
        struct cmsghdr alignment;
    } space;
    struct iovec data = {.iov_base = report.bytes, .iov_len = sizeof report.bytes};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t received = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    report.error = received < 0 ? errno : 0;
    report.outcome = received > 0 ? CRECEIVER_DROPPED : received == 0 ? CRECEIVER_CLOSED : CRECEIVER_FAILED;
    report.size = received > 0 ? (int32_t)received : 0;
    (void)send(answers, &report, sizeof report, MSG_NOSIGNAL); // where nobody listens, nobody waits
}

static void wait_for_end(int descriptor) {
    char byte;
    ssize_t size;
    do {
        size = read(descriptor, &byte, 1);
    } while (size > 0 || (size < 0 && errno == EINTR));
}

// MARK: The parent of them

static void reap(struct child *children) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < CRECEIVER_MOST; i++) {
            if (children[i].pid == pid) children[i].pid = 0;
        }
    }
}

// A free entry for a child of `user`, or NULL.
static struct child *place(struct child *children, uint32_t user) {
    struct child *free_entry = NULL;
    int own = 0;
    for (int i = 0; i < CRECEIVER_MOST; i++) {
        if (children[i].pid == 0) {
            free_entry = &children[i];
        } else if (children[i].user == user) {
            own++;
        }
    }
    return own < CRECEIVER_MOST_OF_USER ? free_entry : NULL;
}

static void refuse(int answers, int32_t outcome, int32_t error) {
    struct creceiver_report_message report;
    memset(&report, 0, sizeof report);
    report.outcome = outcome;
    report.error = error;
    // Where nobody listens any more, there is nobody to tell.
    (void)send(answers, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

union two_descriptors {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr alignment;
};

// One request, with its two descriptors. 1, 0 where the daemon has ended, or -1.
static int next_request(int requests, struct request *request, int descriptors[2]) {
    union two_descriptors space;
    memset(&space, 0, sizeof space);
    struct iovec data = {.iov_base = request, .iov_len = sizeof *request};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t size = recvmsg(requests, &message, MSG_CMSG_CLOEXEC);
    if (size <= 0) return size == 0 ? 0 : -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    // Only the daemon sends here, and always both; without room for both there is none.
    if (size != (ssize_t)sizeof *request || !header || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
        errno = EPROTO;
        return -1;
    }
    memcpy(descriptors, CMSG_DATA(header), 2 * sizeof(int));
    return 1;
}

// Closes what the kernel may close for this process alone: others have it open too.
static void close_both(const int descriptors[2]) {
    (void)close(descriptors[0]); // nothing was written to it
    (void)close(descriptors[1]); // what counts was sent
}

static _Noreturn void be_child(const struct request *request, const int descriptors[2], const int others[2]) {
    // A child that waits for ever must not keep the daemon from seeing that its parent ended.
    (void)close(3);         // nothing was written to it
    (void)close(others[1]); // likewise
    sigset_t alarms;
    (void)sigemptyset(&alarms);        // fails for a bad address alone
    (void)sigaddset(&alarms, SIGALRM); // likewise
    (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL); // likewise
    if (request->kind == CRECEIVER_RECEIVE) receive(descriptors[0], descriptors[1]);
    if (request->kind == CRECEIVER_DROP) drop(descriptors[0], descriptors[1]);
    if (request->kind == CRECEIVER_CLOSE) {
        // The daemon lets go of the answers after it has closed the connection. What lies in it unread is closed by the
        // end of this process, which no socket can put off.
        wait_for_end(others[0]);
        wait_for_end(descriptors[1]);
    }
    _exit(0);
}

// Starts the child that does what was asked. Returns its number, or -1.
//
// The child ends after the parent has closed its copies: the last one to close a connection may have to wait for what
// lies in it.
static pid_t start_child(const struct request *request, const int descriptors[2]) {
    int others[2];
    if (pipe2(others, O_CLOEXEC) != 0) return -1;
    pid_t pid = _Fork();
    if (pid == 0) be_child(request, descriptors, others);
    int error = errno;
    if (pid > 0) close_both(descriptors);
    (void)close(others[0]); // nothing was written to it
    (void)close(others[1]); // likewise
    errno = error;
    return pid;
}

static _Noreturn void serve(int requests) {
    static struct child children[CRECEIVER_MOST];
    sigset_t others;
    (void)sigfillset(&others);         // fails for a bad address alone
    (void)sigdelset(&others, SIGCHLD); // likewise
    struct pollfd entry = {.fd = requests, .events = POLLIN};
    for (;;) {
        reap(children);
        // Interrupted when a child ends.
        if (ppoll(&entry, 1, NULL, &others) <= 0) continue;
        struct request request;
        int descriptors[2];
        int outcome = next_request(requests, &request, descriptors);
        if (outcome == 0 || (outcome < 0 && errno == ECONNRESET)) _exit(0);
        if (outcome < 0) continue;
        reap(children);
        struct child *child = NULL;
        if (request.kind == CRECEIVER_RECEIVE && !(child = place(children, request.user))) {
            // The daemon keeps the connection.
            refuse(descriptors[1], CRECEIVER_FULL, 0);
            close_both(descriptors);
            continue;
        }
        pid_t pid = start_child(&request, descriptors);
        if (pid > 0) {
            if (child) *child = (struct child){.pid = pid, .user = request.user};
            continue;
        }
        refuse(descriptors[1], CRECEIVER_FAILED, errno);
        (void)close(descriptors[1]); // what counts was sent
        // A connection that the daemon has closed must not be closed here: it stays open as long as this process.
        if (request.kind != CRECEIVER_CLOSE) (void)close(descriptors[0]); // nothing was written to it
    }
}

static void on_child(int number) { (void)number; }

// Makes this process hold nothing but `requests`.
static void let_go(int requests) {
    // The daemon ends it by closing its own end; a signal for all of them (Ctrl-C) is the daemon's to judge.
    sigset_t all;
    (void)sigfillset(&all);                      // fails for a bad address alone
    (void)sigprocmask(SIG_SETMASK, &all, NULL);  // likewise
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGALRM, &action, NULL); // fails for an unknown signal alone
    action.sa_handler = on_child;
    (void)sigaction(SIGCHLD, &action, NULL); // likewise
    (void)prctl(PR_SET_NAME, "dld-receiver"); // at worst it keeps the daemon's
    if (chdir("/") != 0) _exit(1);
    // Whoever waits for the end of the daemon's output must not wait for this.
    int none = open("/dev/null", O_RDWR);
    if (none < 0 || dup2(none, 0) < 0 || dup2(none, 1) < 0 || dup2(none, 2) < 0) _exit(1);
    if (requests != 3 && dup2(requests, 3) < 0) _exit(1);
    close_all_from(4);
}

// MARK: In the daemon

int creceiver_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }

int creceiver_start(int32_t *process) {
    int ends[2];
    if (creceiver_pair(ends) != 0) return -1;
    sigset_t all, before;
    (void)sigfillset(&all); // fails for a bad address alone
    // The child must run none of the daemon's handlers.
    (void)sigprocmask(SIG_SETMASK, &all, &before); // likewise
    pid_t pid = _Fork();
    int error = errno;
    if (pid == 0) {
        let_go(ends[1]);
        serve(3);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL); // as above
    (void)close(ends[1]); // nothing was written to it
    if (pid > 0) {
        *process = pid;
        return ends[0];
    }
    (void)close(ends[0]); // nothing was written to it
    errno = error;
    return -1;
}

void creceiver_end(int receiver, int32_t process) {
    // Not closed: another thread may be about to ask.
    (void)shutdown(receiver, SHUT_WR); // fails where the process has ended
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 500; i++) {
        pid_t ended = waitpid(process, NULL, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR)) return;
        (void)nanosleep(&moment, NULL); // a signal makes it shorter
    }
    (void)kill(process, SIGKILL); // it may have ended by now
}

ptrdiff_t creceiver_peek(int connection, void *bytes, size_t capacity, int *has_files) {
    // There is no room for files, so none is opened; the kernel says that some were left out.
    struct iovec data = {.iov_base = bytes, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t size = recvmsg(connection, &message, MSG_PEEK | MSG_DONTWAIT);
    *has_files = size > 0 && (message.msg_flags & MSG_CTRUNC);
    return size;
}

int creceiver_ask(int receiver, int kind, int connection, int answers, uint32_t user) {
    struct request request = {.kind = kind, .user = user};
    int descriptors[2] = {connection, answers};
    union two_descriptors space;
    memset(&space, 0, sizeof space);
    struct iovec data = {.iov_base = &request, .iov_len = sizeof request};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    return sendmsg(receiver, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int creceiver_report(int answers, struct creceiver_report_message *report) {
    ssize_t size = recv(answers, report, sizeof *report, MSG_DONTWAIT);
    if (size <= 0) return (int)size;
    if (size == (ssize_t)sizeof *report && report->count >= 0 && report->count <= CRECEIVER_MOST_FILES && report->size >= 0
        && report->size <= CRECEIVER_MOST_BYTES) {
        return 1;
    }
    errno = EPROTO;
    return -1;
}

int creceiver_choose(int answers, const uint8_t *wanted, int count) {
    ssize_t size = send(answers, wanted, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    return size == count ? 0 : -1;
}

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
#include <sys/resource.h>
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

// What the daemon asks for. The connection comes with it, and the child's end of the answers where there are any.
struct request {
    int32_t kind;
    uint32_t user;
};

// The daemon has closed its own of each connection that it sent before. Nothing comes with it.
#define LET_GO 3

struct child {
    pid_t pid;
    uint32_t user;
};

// A connection that is to be closed.
struct closing {
    int connection;
    uint32_t user;
    // The daemon has closed its own. Before that no child may close it: the daemon would be the last one.
    int is_let_go;
};

// The children that run, those of an entry with a number, and the connections that wait for one.
static struct child children[CRECEIVER_MOST];
static struct closing waiting[CRECEIVER_MOST_WAITING];
static int waiting_count;
static int most_waiting;

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
    report.count = received > 0 && message.msg_controllen > 0;
    (void)send(answers, &report, sizeof report, MSG_NOSIGNAL); // where nobody listens, nobody waits
}

// MARK: The parent of them

static void reap(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < CRECEIVER_MOST; i++) {
            if (children[i].pid == pid) children[i].pid = 0;
        }
    }
}

// A free entry for a child, or NULL.
static struct child *free_entry(void) {
    for (int i = 0; i < CRECEIVER_MOST; i++) {
        if (children[i].pid == 0) return &children[i];
    }
    return NULL;
}

// A free entry for a child of `user`, or NULL where she has as many as she may.
static struct child *place(uint32_t user) {
    int own = 0;
    for (int i = 0; i < CRECEIVER_MOST; i++) own += children[i].pid != 0 && children[i].user == user;
    return own < CRECEIVER_MOST_OF_USER ? free_entry() : NULL;
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

// How many descriptors come with a request.
static int descriptors_of(int32_t kind) {
    return kind == LET_GO ? 0 : kind == CRECEIVER_CLOSE ? 1 : 2;
}

// One request, with its descriptors. 1, 0 where the daemon has ended, or -1.
static int next_request(int requests, struct request *request, int descriptors[2]) {
    union two_descriptors space;
    memset(&space, 0, sizeof space);
    struct iovec data = {.iov_base = request, .iov_len = sizeof *request};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t size = recvmsg(requests, &message, MSG_CMSG_CLOEXEC);
    if (size <= 0) return size == 0 ? 0 : -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    size_t length = header ? header->cmsg_len - CMSG_LEN(0) : 0;
    // Only the daemon sends here, and always all; without room for all there is none.
    if (size != (ssize_t)sizeof *request || length != (size_t)descriptors_of(request->kind) * sizeof(int)) {
        errno = EPROTO;
        return -1;
    }
    if (length > 0) memcpy(descriptors, CMSG_DATA(header), length);
    return 1;
}

// Closes what the kernel may close for this process alone: others have it open too.
static void close_both(const int descriptors[2]) {
    (void)close(descriptors[0]); // nothing was written to it
    (void)close(descriptors[1]); // what counts was sent
}

// Closes the connections that wait, but for those that a child of `user` is to close, where that is not NULL. Others have
// them open too.
static void close_all_waiting_but(const uint32_t *user) {
    for (int i = 0; i < waiting_count; i++) {
        if (user && waiting[i].user == *user && waiting[i].is_let_go) continue;
        (void)close(waiting[i].connection); // nothing was written to it
    }
}

static _Noreturn void be_child(const struct request *request, const int descriptors[2], int parent) {
    // A child that waits for ever must not keep the daemon from seeing that its parent ended.
    (void)close(3); // nothing was written to it
    close_all_waiting_but(request->kind == CRECEIVER_CLOSE ? &request->user : NULL);
    sigset_t alarms;
    (void)sigemptyset(&alarms);        // fails for a bad address alone
    (void)sigaddset(&alarms, SIGALRM); // likewise
    (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL); // likewise
    // The parent closes its own now, so that the last one to close a connection is a child: that one may have to wait.
    char byte = 0;
    (void)send(parent, &byte, 1, MSG_NOSIGNAL); // where the parent has ended, it has closed its own
    while (recv(parent, &byte, 1, 0) < 0 && errno == EINTR) {}
    if (request->kind == CRECEIVER_RECEIVE) receive(descriptors[0], descriptors[1]);
    if (request->kind == CRECEIVER_DROP) drop(descriptors[0], descriptors[1]);
    // What lies unread in a connection is closed by the end of this process, which no socket can put off.
    _exit(0);
}

// Closes what waits of a user. A child has it open.
static void forget_waiting_of(uint32_t user) {
    int left = 0;
    for (int i = 0; i < waiting_count; i++) {
        if (waiting[i].user == user && waiting[i].is_let_go) {
            (void)close(waiting[i].connection); // nothing was written to it
        } else {
            waiting[left++] = waiting[i];
        }
    }
    waiting_count = left;
}

// Starts the child that does what was asked: with a connection and the answers, or for all that waits of a user. Returns
// its number, or -1.
static pid_t start_child(const struct request *request, const int descriptors[2]) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    pid_t pid = _Fork();
    if (pid == 0) {
        (void)close(ends[0]); // nothing was written to it
        be_child(request, descriptors, ends[1]);
    }
    int error = errno;
    (void)close(ends[1]); // nothing was written to it
    if (pid > 0) {
        char byte;
        // Nothing comes where the child was killed.
        while (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR) {}
        if (descriptors) {
            close_both(descriptors);
        } else {
            forget_waiting_of(request->user);
        }
    }
    // Only now may the child end: it must be the last one.
    (void)close(ends[0]); // nothing was written to it
    errno = error;
    return pid;
}

// Has a child close all that waits of a user. 1, or 0 where there can be no child.
static int close_waiting_of(uint32_t user) {
    struct child *child = free_entry();
    if (!child) return 0;
    const struct request request = {.kind = CRECEIVER_CLOSE, .user = user};
    pid_t pid = start_child(&request, NULL);
    if (pid < 0) return 0;
    *child = (struct child){.pid = pid, .user = user};
    return 1;
}

static uint32_t user_of_most_waiting(void) {
    uint32_t user = 0;
    int most = 0;
    for (int i = 0; i < waiting_count; i++) {
        int count = 0;
        for (int j = i; j < waiting_count; j++) count += waiting[j].user == waiting[i].user;
        if (count > most) {
            most = count;
            user = waiting[i].user;
        }
        if (most >= waiting_count - i) break; // nobody has more
    }
    return user;
}

// Has children close what waits, for as many as each user may have. What is too much for that waits until one of them
// ends, or until there is room for no more.
static void close_waiting(void) {
    for (int i = 0; i < waiting_count;) {
        uint32_t user = waiting[i].user;
        int is_tried = i > 0 && waiting[i - 1].user == user;
        if (is_tried || !waiting[i].is_let_go || !place(user) || !close_waiting_of(user)) {
            i++;
        } else {
            i = 0;
        }
    }
    if (waiting_count >= most_waiting) (void)close_waiting_of(user_of_most_waiting()); // otherwise later
}

static void let_all_go(void) {
    for (int i = waiting_count - 1; i >= 0 && !waiting[i].is_let_go; i--) waiting[i].is_let_go = 1;
}

// The daemon has ended. Nobody may be kept by this process's end.
static _Noreturn void end(void) {
    let_all_go();
    while (waiting_count > 0 && close_waiting_of(waiting[0].user)) {}
    _exit(0);
}

static void carry_out(const struct request *request, const int descriptors[2]) {
    let_all_go();
    if (request->kind == CRECEIVER_CLOSE) {
        waiting[waiting_count++] = (struct closing){.connection = descriptors[0], .user = request->user};
        return;
    }
    if (request->kind == LET_GO) return; // it is done for every request
    struct child *child = place(request->user);
    pid_t pid = child ? start_child(request, descriptors) : 0;
    if (child && pid > 0) {
        *child = (struct child){.pid = pid, .user = request->user};
        return;
    }
    // The daemon keeps the connection.
    refuse(descriptors[1], child ? CRECEIVER_FAILED : CRECEIVER_FULL, child ? errno : 0);
    close_both(descriptors);
}

static _Noreturn void serve(int requests) {
    sigset_t others;
    (void)sigfillset(&others);         // fails for a bad address alone
    (void)sigdelset(&others, SIGCHLD); // likewise
    struct pollfd entry = {.fd = requests, .events = POLLIN};
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        reap();
        // A child for all that has come is less work than one for each.
        if (waiting_count >= most_waiting || poll(&entry, 1, 0) <= 0) close_waiting();
        // Without room for one more, and without a child to be had, this tries again instead of reading.
        int is_full = waiting_count >= most_waiting;
        // Interrupted when a child ends.
        if (ppoll(&entry, is_full ? 0 : 1, is_full ? &second : NULL, &others) <= 0) continue;
        struct request request;
        int descriptors[2];
        int outcome = next_request(requests, &request, descriptors);
        if (outcome == 0 || (outcome < 0 && errno == ECONNRESET)) end();
        if (outcome < 0) continue;
        reap();
        carry_out(&request, descriptors);
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
    struct rlimit limit = {.rlim_cur = 64};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); // lower than allowed at worst
        (void)getrlimit(RLIMIT_NOFILE, &limit); // fails for a bad address alone
    }
    // Some are for what is not a connection that waits.
    rlim_t room = limit.rlim_cur > 32 ? limit.rlim_cur - 16 : 16;
    most_waiting = room < CRECEIVER_MOST_WAITING ? (int)room : CRECEIVER_MOST_WAITING;
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

// 0, or -1.
static int send_request(int receiver, const struct request *request, const int descriptors[2]) {
    size_t length = (size_t)descriptors_of(request->kind) * sizeof(int);
    union two_descriptors space;
    memset(&space, 0, sizeof space);
    struct request copy = *request;
    struct iovec data = {.iov_base = &copy, .iov_len = sizeof copy};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (length > 0) {
        message.msg_control = space.bytes;
        message.msg_controllen = CMSG_SPACE(length);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(header), descriptors, length);
    }
    return sendmsg(receiver, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int creceiver_ask(int receiver, int kind, int connection, int answers, uint32_t user) {
    const struct request request = {.kind = kind, .user = user};
    const int descriptors[2] = {connection, answers};
    return send_request(receiver, &request, descriptors);
}

int creceiver_close(int receiver, int connection, uint32_t user) {
    const struct request request = {.kind = CRECEIVER_CLOSE, .user = user};
    const int descriptors[2] = {connection, -1};
    if (send_request(receiver, &request, descriptors) != 0) return -1;
    (void)close(connection); // the other process has it open
    const struct request let_go = {.kind = LET_GO};
    (void)send_request(receiver, &let_go, NULL); // the next request says it too
    return 0;
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

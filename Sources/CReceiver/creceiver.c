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

// A request of the daemon. The message carries the connection, except with LET_GO, and for CRECEIVER_RECEIVE and
// CRECEIVER_DROP also the child's end of the
// socket pair `answers`.
struct request {
    int32_t kind;
    uint32_t user;
};

// The daemon has closed its own descriptor of each connection that it sent before. The message carries no descriptor.
#define LET_GO 3

struct child {
    pid_t pid;
    uint32_t user;
};

// A connection that is to be closed.
struct closing {
    int connection;
    uint32_t user;
    // Whether the daemon has closed its own descriptor. Before that no child may close the connection, because the
    // daemon's close would then be the last one.
    int is_let_go;
};

// The running children (entries with a process id other than 0), and the connections that wait to be closed by a child.
static struct child children[CRECEIVER_MOST];
static struct closing waiting[CRECEIVER_MOST_WAITING];
static int waiting_count;
static int most_waiting;

static void close_all_from(unsigned first) {
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    long limit = sysconf(_SC_OPEN_MAX);
    for (long fd = first; fd < limit; fd++) (void)close((int)fd); // most of them are not open
}

// MARK: The child processes

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

// Sends the files that the daemon has chosen.
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
    // If the daemon has closed its end, these files are closed with the others.
    if (total > 0) (void)linux_send_descriptors(answers, '\n', passed, total);
}

static void receive(int connection, int answers) {
    // Limits how long anything may block this process, as far as a signal can end it.
    (void)alarm(CRECEIVER_SECONDS); // the result is the time left of an earlier alarm
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
    // From here on the client sees the end of the connection, whatever becomes of this process.
    (void)close(connection); // nothing was written to it
    for (int i = 0; i < count; i++) look_at(files[i], &report.files[i]);
    if (send(answers, &report, sizeof report, MSG_NOSIGNAL) == (ssize_t)sizeof report && count > 0) {
        pass_on(answers, files, count);
    }
    // Closed before the files, because closing those may block this process for ever.
    (void)close(answers); // the report and the files were sent
}

// Reads the first bytes of the connection. Their files are neither examined nor closed one by one: the end of this
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
    (void)send(answers, &report, sizeof report, MSG_NOSIGNAL); // without a receiver nobody waits
}

// MARK: The parent process

static void reap(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        for (int i = 0; i < CRECEIVER_MOST; i++) {
            if (children[i].pid == pid) children[i].pid = 0;
        }
    }
}

// Returns a free entry for a child, or NULL.
static struct child *free_entry(void) {
    for (int i = 0; i < CRECEIVER_MOST; i++) {
        if (children[i].pid == 0) return &children[i];
    }
    return NULL;
}

// Returns a free entry for a child of `user`, or NULL if the user has the most children allowed.
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
    // If the daemon has closed its end, the report is not needed.
    (void)send(answers, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

union two_descriptors {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr alignment;
};

// Returns the number of descriptors that a request carries.
static int descriptors_of(int32_t kind) {
    return kind == LET_GO ? 0 : kind == CRECEIVER_CLOSE ? 1 : 2;
}

// Receives one request and its descriptors. Returns 1, 0 if the daemon has ended, or -1.
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
    // Only the daemon sends here, and always every descriptor. If the descriptors do not all fit, none is received.
    if (size != (ssize_t)sizeof *request || length != (size_t)descriptors_of(request->kind) * sizeof(int)) {
        errno = EPROTO;
        return -1;
    }
    if (length > 0) memcpy(descriptors, CMSG_DATA(header), length);
    return 1;
}

// Closes two descriptors. Other processes have the same files open, so the close cannot block.
static void close_both(const int descriptors[2]) {
    (void)close(descriptors[0]); // nothing was written to it
    (void)close(descriptors[1]); // the reports were sent
}

// Closes the connections that wait, except those that a child of `user` is to close, if `user` is not NULL. Other
// processes have them open too.
static void close_all_waiting_but(const uint32_t *user) {
    for (int i = 0; i < waiting_count; i++) {
        if (user && waiting[i].user == *user && waiting[i].is_let_go) continue;
        (void)close(waiting[i].connection); // nothing was written to it
    }
}

static _Noreturn void be_child(const struct request *request, const int descriptors[2], int parent) {
    // A child that blocks for ever must not keep the daemon from noticing that the parent has ended.
    (void)close(3); // nothing was written to it
    close_all_waiting_but(request->kind == CRECEIVER_CLOSE ? &request->user : NULL);
    sigset_t alarms;
    (void)sigemptyset(&alarms);        // fails only for an invalid address
    (void)sigaddset(&alarms, SIGALRM); // likewise
    (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL); // likewise
    // The parent now closes its own descriptors. The last process to close a connection is then a child, and only the
    // child may block.
    char byte = 0;
    (void)send(parent, &byte, 1, MSG_NOSIGNAL); // a parent that has ended has closed its own
    while (recv(parent, &byte, 1, 0) < 0 && errno == EINTR) {}
    if (request->kind == CRECEIVER_RECEIVE) receive(descriptors[0], descriptors[1]);
    if (request->kind == CRECEIVER_DROP) drop(descriptors[0], descriptors[1]);
    // The end of this process closes what lies unread in a connection. No socket can delay that.
    _exit(0);
}

// Closes the waiting connections of a user. A child has them open.
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

// Starts the child that carries out a request: with a connection and its end of `answers`, or for all waiting
// connections of a user. Returns its process id, or -1.
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
        // Nothing is received if the child was killed.
        while (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR) {}
        if (descriptors) {
            close_both(descriptors);
        } else {
            forget_waiting_of(request->user);
        }
    }
    // The child may end only now, so that it is the last process to close the connection.
    (void)close(ends[0]); // nothing was written to it
    errno = error;
    return pid;
}

// Starts a child that closes all waiting connections of a user. Returns 1, or 0 if no child could be started.
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

// Starts children that close the waiting connections, up to the limit of each user. The remaining connections wait
// until a child ends or until the table of waiting connections is full.
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

// Called after the daemon has ended. Children close the connections, since this process must not block while it ends.
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
    if (request->kind == LET_GO) return; // let_all_go runs for every request
    struct child *child = place(request->user);
    pid_t pid = child ? start_child(request, descriptors) : 0;
    if (child && pid > 0) {
        *child = (struct child){.pid = pid, .user = request->user};
        return;
    }
    // No child was started: the daemon keeps the connection.
    refuse(descriptors[1], child ? CRECEIVER_FAILED : CRECEIVER_FULL, child ? errno : 0);
    close_both(descriptors);
}

static _Noreturn void serve(int requests) {
    sigset_t others;
    (void)sigfillset(&others);         // fails only for an invalid address
    (void)sigdelset(&others, SIGCHLD); // likewise
    struct pollfd entry = {.fd = requests, .events = POLLIN};
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        reap();
        // One child that closes everything received so far costs less than one child for each connection.
        if (waiting_count >= most_waiting || poll(&entry, 1, 0) <= 0) close_waiting();
        // While the table is full and no child can be started, the loop retries instead of reading further requests.
        int is_full = waiting_count >= most_waiting;
        // A child that ends interrupts the wait.
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

// Makes this process close everything but `requests`.
static void let_go(int requests) {
    // The daemon ends this process by closing its own end. A signal to the whole process group (Ctrl-C) is left to the
    // daemon.
    sigset_t all;
    (void)sigfillset(&all);                      // fails only for an invalid address
    (void)sigprocmask(SIG_SETMASK, &all, NULL);  // likewise
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGALRM, &action, NULL); // fails only for an unknown signal
    action.sa_handler = on_child;
    (void)sigaction(SIGCHLD, &action, NULL); // likewise
    (void)prctl(PR_SET_NAME, "dld-receiver"); // on failure the process keeps the daemon's name
    if (chdir("/") != 0) _exit(1);
    // A program that waits for the end of the daemon's output must not wait for this process.
    int none = open("/dev/null", O_RDWR);
    if (none < 0 || dup2(none, 0) < 0 || dup2(none, 1) < 0 || dup2(none, 2) < 0) _exit(1);
    if (requests != 3 && dup2(requests, 3) < 0) _exit(1);
    close_all_from(4);
    struct rlimit limit = {.rlim_cur = 64};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); // at worst the limit stays lower than allowed
        (void)getrlimit(RLIMIT_NOFILE, &limit); // fails only for an invalid address
    }
    // Some descriptors are reserved for purposes other than waiting connections.
    rlim_t room = limit.rlim_cur > 32 ? limit.rlim_cur - 16 : 16;
    most_waiting = room < CRECEIVER_MOST_WAITING ? (int)room : CRECEIVER_MOST_WAITING;
}

// MARK: In the daemon

int creceiver_pair(int ends[2]) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }

int creceiver_start(int32_t *process) {
    int ends[2];
    if (creceiver_pair(ends) != 0) return -1;
    sigset_t all, before;
    (void)sigfillset(&all); // fails only for an invalid address
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
    // `receiver` is not closed, because another thread may be about to send a request.
    (void)shutdown(receiver, SHUT_WR); // fails if the process has ended
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 500; i++) {
        pid_t ended = waitpid(process, NULL, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR)) return;
        (void)nanosleep(&moment, NULL); // a signal shortens it
    }
    (void)kill(process, SIGKILL); // the process may have ended by now
}

ptrdiff_t creceiver_peek(int connection, void *bytes, size_t capacity, int *has_files) {
    // The message has no room for files, so the kernel opens none and reports that some were left out.
    struct iovec data = {.iov_base = bytes, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t size = recvmsg(connection, &message, MSG_PEEK | MSG_DONTWAIT);
    *has_files = size > 0 && (message.msg_flags & MSG_CTRUNC);
    return size;
}

// Returns 0, or -1.
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
    (void)send_request(receiver, &let_go, NULL); // the next request has the same effect
    return 0;
}

int creceiver_report(int answers, struct creceiver_report_message *report) {
    ssize_t size = recv(answers, report, sizeof *report, MSG_DONTWAIT);
    if (size <= 0) return (int)size;
    if (size == (ssize_t)sizeof *report && report->count >= 0 && report->count <= CRECEIVER_MOST_FILES
        && report->size >= 0 && report->size <= CRECEIVER_MOST_BYTES) {
        return 1;
    }
    errno = EPROTO;
    return -1;
}

int creceiver_choose(int answers, const uint8_t *wanted, int count) {
    ssize_t size = send(answers, wanted, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    return size == count ? 0 : -1;
}

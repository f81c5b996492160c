#ifndef CRECEIVER_H
#define CRECEIVER_H

#include <stddef.h>
#include <stdint.h>

// A process that receives open files from clients (SCM_RIGHTS, unix(7)) in place of the daemon.
//
// Whoever has a file open tells its file system of the closing, also when the process ends. A FUSE file system of a
// user's own may never answer that, and keeps the process from ending for as long, SIGKILL or not. So the daemon takes
// no file before it knows where that lies: a child of its own receives the files, says where they lie, passes on those
// that the daemon wants, and closes the others. Each message has a child of its own, which may wait for ever: it has
// nothing else open, and another parent once the daemon has ended.
//
// The kernel closes the files of a message that is read without room for them, or never read, in the thread that reads
// or closes the connection, and a socket among them may keep that thread for as long as its sender likes (SO_LINGER).
// So the daemon reads and closes no connection in which files wait: a child does.
//
// All of this is C without locks and without the heap: it runs after fork(2) without execve(2).

// As many files as one message takes (LINUX_MOST_DESCRIPTORS).
#define CRECEIVER_MOST_FILES 253
// Bytes that are taken at once where files come with them unasked.
#define CRECEIVER_MOST_BYTES 4096
// Children of one user, and in all. Connections that are to be closed wait where their user has as many.
#define CRECEIVER_MOST_OF_USER 8
#define CRECEIVER_MOST 256
// Connections that wait. With as many, a further child closes all of the user who has most of them.
#define CRECEIVER_MOST_WAITING 4096
// How long a child waits for the daemon.
#define CRECEIVER_SECONDS 60

// Where a file lies and what it is, without asking its file system.
struct creceiver_file {
    // The number of its mount in /proc/self/mountinfo.
    uint64_t mount;
    // The device of its file system.
    uint32_t major, minor;
    // As linux_is_on_disk finds it.
    int32_t is_on_disk;
    // st_mode of stat(2).
    uint32_t mode;
    // errno(3) where the rest is not known, otherwise 0.
    int32_t error;
};

#define CRECEIVER_RECEIVED 1
// The client closed the connection.
#define CRECEIVER_CLOSED 2
// See `error`.
#define CRECEIVER_FAILED 3
// As many children as the user may have; the message has not been read.
#define CRECEIVER_FULL 4
// The message was read, and its files are closed by the end of the child.
#define CRECEIVER_DROPPED 5

// What became of a message.
struct creceiver_report_message {
    int32_t outcome;
    int32_t error;
    // Files that came; of those that are dropped 1 stands for any number.
    int32_t count;
    // How many bytes were read.
    int32_t size;
    uint8_t bytes[CRECEIVER_MOST_BYTES];
    struct creceiver_file files[CRECEIVER_MOST_FILES];
};

// Starts the process, whose id `process` becomes, and which ends with the descriptor that is returned, or returns -1.
// What is open at that moment is closed in the process: to be called before much is.
int creceiver_start(int32_t *process);

// Ends the process, and waits for that, half a second at most. What hangs is not it but a child of its.
void creceiver_end(int receiver, int32_t process);

// The bytes that wait in a connection, without taking them or any file: as recv(2) returns, without waiting. `has_files`
// becomes 1 where files come with one of the bytes, or behind them: the kernel looks further than the bytes go.
ptrdiff_t creceiver_peek(int connection, void *bytes, size_t capacity, int *has_files);

// Receives one byte and the files that come with it; the report says where these lie, and creceiver_choose follows.
#define CRECEIVER_RECEIVE 0
// Takes some bytes, up to the first ones with files and with these, and closes the files.
#define CRECEIVER_DROP 1
// Closes connections.
#define CRECEIVER_CLOSE 2

// Has a child do one of the first two. The report comes to the other end of `answers`, which creceiver_pair made. 0, or -1.
int creceiver_ask(int receiver, int kind, int connection, int answers, uint32_t user);

// Closes the connection here, and has a child be the last one to close it. 0, or -1: it is still open then. To be called
// by one thread at a time.
int creceiver_close(int receiver, int connection, uint32_t user);

// Two ends of a connection between the daemon and a child. 0, or -1.
int creceiver_pair(int ends[2]);

// Receives the report, without waiting. 1, 0 where the child ended without one, or -1.
int creceiver_report(int answers, struct creceiver_report_message *report);

// Says for each of `count` files whether the daemon wants it (1) or not (0). The files come in one message, in their
// order, with one byte: linux_receive_descriptors. 0, or -1.
int creceiver_choose(int answers, const uint8_t *wanted, int count);

#endif

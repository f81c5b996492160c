#ifndef CRECEIVER_H
#define CRECEIVER_H

#include <stddef.h>
#include <stdint.h>

// A process that receives open files from clients (SCM_RIGHTS, unix(7)) in place of the daemon.
//
// A process that closes a file, or ends with it open, has to notify the file system. A user's own FUSE file system may
// never reply to that. It then blocks the end of the process for as long, even after SIGKILL. The daemon therefore
// accepts no file before it knows which file system the file is on. A separate child process receives the files,
// reports where they lie, sends the daemon the files that it wants, and closes the others. Each message gets its own
// child, which may block for ever: it has nothing else open, and is reparented when the daemon ends.
//
// The kernel closes the files of a message that is read without room for them, or that is never read. It does so in the
// thread that reads or closes the connection. A socket among those files may block that thread for as long as its
// sender likes (SO_LINGER). The daemon therefore neither reads nor closes a connection in which files wait: a child
// does.
//
// All of this is C without locks and without heap allocation, because it runs after fork(2) without execve(2).

// The most files that one message can carry (LINUX_MOST_DESCRIPTORS).
#define CRECEIVER_MOST_FILES 253
// The most bytes that are read at once if unexpected files come with them.
#define CRECEIVER_MOST_BYTES 4096
// The most children of one user, and in all. If a user has as many, that user's connections wait to be closed.
#define CRECEIVER_MOST_OF_USER 8
#define CRECEIVER_MOST 256
// The most connections that may wait to be closed. At this number, an additional child closes all connections of the
// user who has the most of them.
#define CRECEIVER_MOST_WAITING 4096
// How long a child waits for the daemon, in seconds.
#define CRECEIVER_SECONDS 60

// The location and type of a file, determined without a request to its file system.
struct creceiver_file {
    // The id of its mount in /proc/self/mountinfo.
    uint64_t mount;
    // The device number of its file system.
    uint32_t major, minor;
    // The result of linux_is_on_disk.
    int32_t is_on_disk;
    // st_mode of stat(2).
    uint32_t mode;
    // The errno(3) value if the other members could not be determined, otherwise 0.
    int32_t error;
};

#define CRECEIVER_RECEIVED 1
// The client closed the connection.
#define CRECEIVER_CLOSED 2
// Receiving failed, or no child could be started; see `error`.
#define CRECEIVER_FAILED 3
// The limit on children was reached; the message has not been read.
#define CRECEIVER_FULL 4
// The message was read. The end of the child closes its files.
#define CRECEIVER_DROPPED 5

// The outcome of receiving a message.
struct creceiver_report_message {
    int32_t outcome;
    int32_t error;
    // The number of files received. For CRECEIVER_DROPPED, 1 stands for any number.
    int32_t count;
    // The number of bytes read.
    int32_t size;
    uint8_t bytes[CRECEIVER_MOST_BYTES];
    struct creceiver_file files[CRECEIVER_MOST_FILES];
};

// Starts the process and stores its id in `process`. Returns a descriptor, and the process ends once that is closed.
// Returns -1 on failure. Files that are open at that moment get closed in the process, so call this before many are
// open.
int creceiver_start(int32_t *process);

// Ends the process, and waits at most half a second for that. Only a child of it can hang, not the process itself.
void creceiver_end(int receiver, int32_t process);

// Copies the bytes that wait in a connection, without consuming them and without receiving a file. Returns what recv(2)
// returns, and does not block. `has_files` becomes 1 if files come with one of these bytes or behind them, since the
// kernel looks beyond the last byte.
ptrdiff_t creceiver_peek(int connection, void *bytes, size_t capacity, int *has_files);

// Receives one byte and the files that come with it. The report states where the files lie; creceiver_choose follows.
#define CRECEIVER_RECEIVE 0
// Reads bytes, up to and including the first ones that carry files, and closes those files.
#define CRECEIVER_DROP 1
// Closes connections.
#define CRECEIVER_CLOSE 2

// Requests that a child carry out CRECEIVER_RECEIVE or CRECEIVER_DROP. The report is sent to the other end of
// `answers`, which creceiver_pair created. Returns 0, or -1.
int creceiver_ask(int receiver, int kind, int connection, int answers, uint32_t user);

// Closes the daemon's descriptor of the connection, and leaves the last close to a child. Returns 0, or -1 with the
// descriptor still open. Call it from one thread at a time.
int creceiver_close(int receiver, int connection, uint32_t user);

// Creates the two ends of a connection between the daemon and a child. Returns 0, or -1.
int creceiver_pair(int ends[2]);

// Receives the report, without blocking. Returns 1, 0 if the child ended without a report, or -1.
int creceiver_report(int answers, struct creceiver_report_message *report);

// Sends, for each of `count` files, whether the daemon wants it (1) or not (0). The files then come in one message, in
// their order, with one byte: see linux_receive_descriptors. Returns 0, or -1.
int creceiver_choose(int answers, const uint8_t *wanted, int count);

#endif

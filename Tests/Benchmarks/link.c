// A link between two network namespaces of its own (network_namespaces(7)), as root:
// link MILLISECONDS PERMILLE MBIT-OF-A-CONNECTION MBIT-OF-ALL QUEUE-KIB
//
// Half of the round trip passes in each direction, and of each direction so many packets in a thousand are lost. What
// waits for a rate beyond the queue is dropped. Prints "ready SERVER CLIENT", the descriptors of the namespaces, which
// nsenter(1) enters as /proc/PID/fd/N. The server has 198.18.0.1, the client 198.18.0.2 (RFC 2544). Everything vanishes
// with this process.
//
// User space does it because kernels without the packet scheduler netem have nothing that delays a packet.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { largest_packet = 1500, most_packets = 1 << 17, packets_at_once = 64 };

struct packet {
    int64_t due;
    uint64_t number;
    int side;
    int length;
    struct packet *next;
    unsigned char bytes[largest_packet];
};

static struct packet *heap[most_packets];
static int heap_count = 0;
static struct packet *spare = NULL;
static uint64_t next_number = 0;
// When a connection, by its client's port, and the link as a whole are free again, for each direction.
static int64_t connection_free[2][1 << 16];
static int64_t link_free[2];
static int64_t half_trip, queue_bytes;
static uint64_t loss;
static double connection_rate, link_rate;  // bytes a nanosecond

static void require(int holds, const char *what) {
    if (holds) { return; }
    if (fprintf(stderr, "link: %s: %s\n", what, strerror(errno)) < 0) { exit(74); }
    exit(1);
}

static int64_t now(void) {
    struct timespec time;
    require(clock_gettime(CLOCK_MONOTONIC, &time) == 0, "clock_gettime");
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static uint64_t random_number(void) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// MARK: Namespaces

static void set_up(int control, const char *name, const char *address) {
    struct ifreq request = {0};
    require(snprintf(request.ifr_name, IFNAMSIZ, "%s", name) > 0, "name");
    if (address != NULL) {
        struct sockaddr_in *place = (struct sockaddr_in *)(void *)&request.ifr_addr;
        place->sin_family = AF_INET;
        require(inet_pton(AF_INET, address, &place->sin_addr) == 1, address);
        require(ioctl(control, SIOCSIFADDR, &request) == 0, "SIOCSIFADDR");
        require(inet_pton(AF_INET, "255.255.255.252", &place->sin_addr) == 1, "mask");
        require(ioctl(control, SIOCSIFNETMASK, &request) == 0, "SIOCSIFNETMASK");
        request.ifr_qlen = 10000;
        require(ioctl(control, SIOCSIFTXQLEN, &request) == 0, "SIOCSIFTXQLEN");
    }
    request.ifr_flags = IFF_UP;
    require(ioctl(control, SIOCSIFFLAGS, &request) == 0, "SIOCSIFFLAGS");
}

// Enters a new namespace with one end of the link, and returns the end; `namespace` gets a descriptor of it.
static int open_end(const char *address, int *namespace) {
    require(unshare(CLONE_NEWNET) == 0, "unshare");
    *namespace = open("/proc/self/ns/net", O_RDONLY);
    require(*namespace >= 0, "/proc/self/ns/net");
    const int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    require(end >= 0, "/dev/net/tun");
    struct ifreq request = {.ifr_name = "line0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    require(ioctl(end, TUNSETIFF, &request) == 0, "TUNSETIFF");
    const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    require(control >= 0, "socket");
    set_up(control, "lo", NULL);
    set_up(control, "line0", address);
    require(close(control) == 0, "close");
    return end;
}

// MARK: Packets on their way, the next one first

static int is_before(const struct packet *one, const struct packet *other) {
    return one->due != other->due ? one->due < other->due : one->number < other->number;
}

static void push(struct packet *packet) {
    int place = heap_count++;
    for (; place > 0 && is_before(packet, heap[(place - 1) / 2]); place = (place - 1) / 2) {
        heap[place] = heap[(place - 1) / 2];
    }
    heap[place] = packet;
}

static struct packet *pop(void) {
    struct packet *first = heap[0], *last = heap[--heap_count];
    int place = 0;
    for (int child = 1; child < heap_count; child = 2 * place + 1) {
        if (child + 1 < heap_count && is_before(heap[child + 1], heap[child])) { child += 1; }
        if (!is_before(heap[child], last)) { break; }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = last;
    return first;
}

// Takes a place in a line of bytes that pass at a rate, and returns the time when the last has passed; -1 if the queue
// is full.
static int64_t take(int64_t *free, int64_t time, int length, double rate) {
    if (rate <= 0) { return time; }
    const int64_t begin = *free > time ? *free : time;
    if ((double)(begin - time) * rate > (double)queue_bytes) { return -1; }
    *free = begin + (int64_t)(length / rate);
    return *free;
}

// The port of the client in a TCP packet over IPv4; 0 of anything else, whose rate is shared.
static int client_port(const struct packet *packet) {
    const unsigned char *bytes = packet->bytes;
    const int header = (bytes[0] & 15) * 4;
    if (bytes[0] >> 4 != 4 || bytes[9] != 6 || packet->length < header + 4) { return 0; }
    const unsigned char *port = bytes + header + (packet->side == 0 ? 2 : 0);
    return port[0] << 8 | port[1];
}

static void send_on(struct packet *packet, int64_t time) {
    int64_t due = -1;
    const int side = packet->side;
    if (heap_count < most_packets && random_number() % 1000 >= loss) {
        // The link comes first: what waits for the rate of its connection holds no other connection up.
        due = take(&link_free[side], time, packet->length, link_rate);
        if (due >= 0) {
            due = take(&connection_free[side][client_port(packet)], due, packet->length, connection_rate);
        }
    }
    if (due < 0) {
        packet->next = spare;
        spare = packet;
        return;
    }
    packet->due = due + half_trip;
    packet->number = next_number++;
    push(packet);
}

static void receive(int end, int side) {
    for (int count = 0; count < packets_at_once; count++) {
        struct packet *packet = spare;
        if (packet == NULL) {
            packet = malloc(sizeof *packet);
            require(packet != NULL, "memory");
        } else {
            spare = packet->next;
        }
        packet->side = side;
        packet->length = (int)read(end, packet->bytes, largest_packet);
        if (packet->length < 20) {
            packet->next = spare;
            spare = packet;
            return;
        }
        send_on(packet, now());
    }
}

int main(int count, char **words) {
    require(count == 6, "usage: link MILLISECONDS PERMILLE MBIT-OF-A-CONNECTION MBIT-OF-ALL QUEUE-KIB");
    half_trip = (int64_t)(strtod(words[1], NULL) * 500000);
    loss = strtoull(words[2], NULL, 10);
    connection_rate = strtod(words[3], NULL) / 8000;
    link_rate = strtod(words[4], NULL) / 8000;
    queue_bytes = strtoll(words[5], NULL, 10) * 1024;
    int namespaces[2], ends[2];
    ends[0] = open_end("198.18.0.1", &namespaces[0]);
    ends[1] = open_end("198.18.0.2", &namespaces[1]);
    require(printf("ready %d %d\n", namespaces[0], namespaces[1]) > 0 && fflush(stdout) == 0, "standard output");
    for (;;) {
        int64_t time = now();
        while (heap_count > 0 && heap[0]->due <= time) {
            struct packet *packet = pop();
            // The end of the other side takes it, or it is lost.
            if (write(ends[1 - packet->side], packet->bytes, (size_t)packet->length) < 0) { next_number += 1; }
            packet->next = spare;
            spare = packet;
        }
        struct pollfd watched[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLIN}};
        struct timespec wait = {0};
        if (heap_count > 0 && heap[0]->due > time) {
            wait.tv_sec = (heap[0]->due - time) / 1000000000;
            wait.tv_nsec = (heap[0]->due - time) % 1000000000;
        }
        if (ppoll(watched, 2, heap_count > 0 ? &wait : NULL, NULL) <= 0) { continue; }
        for (int side = 0; side < 2; side++) {
            if (watched[side].revents != 0) { receive(ends[side], side); }
        }
    }
}

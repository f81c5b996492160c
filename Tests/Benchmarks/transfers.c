// Slow downloads with nothing around libcurl, to compare the daemon with: transfers URL COUNT DIRECTORY
//
// One multi handle, one epoll set, and a file for each download. Prints "open" when each has received bytes, and runs
// until a signal ends it.
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct download {
    int file;
    int has_bytes;
};

static int epoll = -1;
static long waiting = 0;
static long long deadline = -1;

static long long milliseconds(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) { exit(71); }
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void require(int holds, const char *what) {
    if (holds) { return; }
    if (fprintf(stderr, "transfers: %s\n", what) < 0) { exit(74); }
    exit(1);
}

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
    struct download *download = context;
    if (!download->has_bytes) {
        download->has_bytes = 1;
        waiting -= 1;
    }
    const ssize_t written = write(download->file, bytes, size * count);
    return written < 0 ? 0 : (size_t)written;
}

static int watch(CURL *easy, curl_socket_t socket, int what, void *context, void *known) {
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        // The socket may be closed already.
        return epoll_ctl(epoll, EPOLL_CTL_DEL, socket, NULL) == 0 ? 0 : 0;
    }
    struct epoll_event event = {.events = 0, .data.fd = socket};
    if (what & CURL_POLL_IN) { event.events |= EPOLLIN; }
    if (what & CURL_POLL_OUT) { event.events |= EPOLLOUT; }
    if (known == NULL) {
        require(curl_multi_assign(context, socket, &epoll) == CURLM_OK, "curl_multi_assign");
        return epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
    }
    return epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
}

static int set_timer(CURLM *multi, long delay, void *context) {
    (void)multi;
    (void)context;
    deadline = delay < 0 ? -1 : milliseconds() + delay;
    return 0;
}

static void start(CURLM *multi, const char *url, const char *directory, long number) {
    char text[4096];
    struct download *download = calloc(1, sizeof *download);
    require(download != NULL, "out of memory");
    require(snprintf(text, sizeof text, "%s/%ld", directory, number) < (int)sizeof text, "the directory is too long");
    download->file = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(download->file >= 0, "a file cannot be created");
    require(snprintf(text, sizeof text, "%s?%ld", url, number) < (int)sizeof text, "the URL is too long");
    CURL *easy = curl_easy_init();
    require(easy != NULL, "curl_easy_init");
    require(curl_easy_setopt(easy, CURLOPT_URL, text) == CURLE_OK, "CURLOPT_URL");
    require(curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK, "CURLOPT_NOSIGNAL");
    require(curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive) == CURLE_OK, "CURLOPT_WRITEFUNCTION");
    require(curl_easy_setopt(easy, CURLOPT_WRITEDATA, download) == CURLE_OK, "CURLOPT_WRITEDATA");
    require(curl_multi_add_handle(multi, easy) == CURLM_OK, "curl_multi_add_handle");
}

int main(int count, char **words) {
    require(count == 4, "usage: transfers URL COUNT DIRECTORY");
    waiting = strtol(words[2], NULL, 10);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    require(epoll >= 0, "epoll_create1");
    require(curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK, "curl_global_init");
    CURLM *multi = curl_multi_init();
    require(multi != NULL, "curl_multi_init");
    require(curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch) == CURLM_OK, "CURLMOPT_SOCKETFUNCTION");
    require(curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi) == CURLM_OK, "CURLMOPT_SOCKETDATA");
    require(curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK, "CURLMOPT_TIMERFUNCTION");
    for (long number = 0, all = waiting; number < all; number++) { start(multi, words[1], words[3], number); }
    int running = 1, has_told = 0;
    while (running > 0) {
        struct epoll_event events[256];
        const long long wait = deadline < 0 ? -1 : deadline - milliseconds();
        const int ready = epoll_wait(epoll, events, 256, wait > 1000 ? 1000 : wait < 0 && deadline >= 0 ? 0 : (int)wait);
        for (int index = 0; index < ready; index++) {
            const int mask = (events[index].events & EPOLLOUT ? CURL_CSELECT_OUT : 0)
                | (events[index].events & ~(uint32_t)EPOLLOUT ? CURL_CSELECT_IN : 0);
            require(curl_multi_socket_action(multi, events[index].data.fd, mask, &running) == CURLM_OK, "socket action");
        }
        if (deadline >= 0 && milliseconds() >= deadline) {
            deadline = -1;
            require(curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running) == CURLM_OK, "timeout");
        }
        if (waiting == 0 && !has_told) {
            has_told = 1;
            require(printf("open\n") > 0 && fflush(stdout) == 0, "standard output");
        }
    }
    return 0;
}

// Runs a command and writes its wall time, processor times, peak of resident memory and wait status to a file:
// measured FILE COMMAND…
//
// A program of a few pages: the peak that the kernel reports of a child includes what its parent had at the fork.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) { return 0; }
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int count, char **words) {
    if (count < 3) { return fputs("usage: measured FILE COMMAND…\n", stderr) < 0 ? 1 : 64; }
    const double begin = now();
    const pid_t child = fork();
    if (child < 0) { return 71; }
    if (child == 0) {
        if (execvp(words[2], words + 2) != 0) {
            if (fprintf(stderr, "%s: %s\n", words[2], strerror(errno)) < 0) { _exit(126); }
        }
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR) { return 71; }
    }
    const double end = now();
    FILE *file = fopen(words[1], "we");
    if (file == NULL) { return 74; }
    const int written = fprintf(
        file, "%.6f %.6f %.6f %ld %d\n", end - begin, seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss,
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(file) != 0 || written < 0 ? 74 : 0;
}

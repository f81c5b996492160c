// A library to preload into a daemon, which adds to the system's time the number of seconds in the file named by
// `CLOCK_STEP`. The monotonic clocks stay as they are.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long long *step;

__attribute__((constructor)) static void map_step(void) {
    const char *path = getenv("CLOCK_STEP");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *place = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) step = place;
    (void)close(file); // nothing was written to it
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && step) now->tv_sec += *step;
    return (int)result;
}

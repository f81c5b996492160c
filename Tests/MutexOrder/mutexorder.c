// Makes Synchronization.Mutex visible to ThreadSanitizer. A contended lock is acquired and released inside the Swift
// runtime, which is not instrumented, so ThreadSanitizer reports false races. These functions interpose the runtime's
// slow paths and report them to the sanitizer if one is present. If the runtime renames the functions, this file has no
// effect and the false reports return.
#define _GNU_SOURCE
#include "mutexorder.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define HIDDEN __attribute__((swiftcall, no_sanitize("thread")))
#define SELF __attribute__((swift_context))

HIDDEN void lock_slowly(uint32_t thread, SELF void *mutex) __asm__(LOCK);
HIDDEN void lock_slowly(uint32_t thread, SELF void *mutex) {
    static __attribute__((swiftcall)) void (*real)(uint32_t, SELF void *);
    if (real == 0) real = (__attribute__((swiftcall)) void (*)(uint32_t, SELF void *))dlsym(RTLD_NEXT, LOCK);
    real(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

HIDDEN void unlock_slowly(SELF void *mutex) __asm__(UNLOCK);
HIDDEN void unlock_slowly(SELF void *mutex) {
    static __attribute__((swiftcall)) void (*real)(SELF void *);
    if (real == 0) real = (__attribute__((swiftcall)) void (*)(SELF void *))dlsym(RTLD_NEXT, UNLOCK);
    if (__tsan_release) __tsan_release(mutex);
    real(mutex);
}

#define _GNU_SOURCE
#include "ccurl.h"

#include <dlfcn.h>
#include <stdint.h>

void ccurl_keep_openssl_at_exit(void) {
    // Looked up when the program runs: libcurl may have been built with another TLS library.
    int (*initialise)(uint64_t, const void *) =
        (int (*)(uint64_t, const void *))dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    const uint64_t no_atexit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT, OPENSSL_init_crypto(3)
    if (initialise != NULL) (void)initialise(no_atexit, NULL);  // curl_global_init reports what fails
}

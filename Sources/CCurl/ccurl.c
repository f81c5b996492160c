#define _GNU_SOURCE
#include "ccurl.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

void ccurl_keep_openssl_at_exit(void) {
    // Resolved at run time, because libcurl may have been built with another TLS library.
    int (*initialise)(uint64_t, const void *) =
        (int (*)(uint64_t, const void *))dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    const uint64_t no_atexit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT, OPENSSL_init_crypto(3)
    if (initialise != NULL) (void)initialise(no_atexit, NULL);  // curl_global_init reports any failure
}

static int (*get_shutdown)(const void *);

static void find_get_shutdown(void) {
    get_shutdown = (int (*)(const void *))dlsym(RTLD_DEFAULT, "SSL_get_shutdown");
}

int ccurl_has_tls_ended(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return -1;
    if (session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL) return -1;
    // Resolved once only, because this function is called while bytes are received.
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, find_get_shutdown) != 0 || get_shutdown == NULL) return -1;
    const int received = 2;  // SSL_RECEIVED_SHUTDOWN, SSL_get_shutdown(3)
    return (get_shutdown(session->internals) & received) != 0;
}

// libpsl has no headers on a system that only builds with libcurl; these are its declarations.
typedef const char *(*unregistrable_domain_function)(const void *list, const char *host);
static const void *suffix_list;
static unregistrable_domain_function get_unregistrable_domain;

static void load_suffix_list(void) {
    get_unregistrable_domain = (unregistrable_domain_function)dlsym(RTLD_DEFAULT, "psl_unregistrable_domain");
    // The newer of the system's list and the one within the library.
    const void *(*latest)(const char *) = (const void *(*)(const char *))dlsym(RTLD_DEFAULT, "psl_latest");
    if (latest != NULL) suffix_list = latest(NULL);
}

long ccurl_public_suffix_length(const char *host) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, load_suffix_list) != 0) return -1;
    if (get_unregistrable_domain == NULL || suffix_list == NULL) return -1;
    const char *suffix = get_unregistrable_domain(suffix_list, host);
    return suffix == NULL ? 0 : (long)strlen(suffix);
}

int ccurl_copy_address(const struct curl_sockaddr *address, unsigned char bytes[16]) {
    if (address->family == AF_INET && address->addrlen >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in four;
        memcpy(&four, &address->addr, sizeof four);
        memcpy(bytes, &four.sin_addr, 4);
        return 4;
    }
    if (address->family == AF_INET6 && address->addrlen >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 six;
        // The member `addr` is declared shorter than the address that it holds.
        memcpy(&six, (const char *)address + offsetof(struct curl_sockaddr, addr), sizeof six);
        memcpy(bytes, &six.sin6_addr, 16);
        return 16;
    }
    return 0;
}

curl_socket_t ccurl_open_socket(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

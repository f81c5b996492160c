#define _GNU_SOURCE
#include "ccurl.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void ccurl_keep_openssl_at_exit(void) {
    // Resolved at run time, because libcurl may have been built with another TLS library.
    int (*initialise)(uint64_t, const void *) =
        (int (*)(uint64_t, const void *))dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    const uint64_t no_atexit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT, OPENSSL_init_crypto(3)
    if (initialise != NULL) (void)initialise(no_atexit, NULL);  // curl_global_init reports any failure
}

// OpenSSL's functions on a session, resolved once only, because they are called while bytes are received and before each
// request. NULL where they are missing.
static struct {
    int (*get_shutdown)(const void *ssl);
    int (*has_pending)(const void *ssl);
    void (*get_alpn)(const void *ssl, const unsigned char **name, unsigned int *length);
} tls;

static void find_tls(void) {
    tls.get_shutdown = (int (*)(const void *))dlsym(RTLD_DEFAULT, "SSL_get_shutdown");
    tls.has_pending = (int (*)(const void *))dlsym(RTLD_DEFAULT, "SSL_has_pending");
    tls.get_alpn = (void (*)(const void *, const unsigned char **, unsigned int *))dlsym(
        RTLD_DEFAULT, "SSL_get0_alpn_selected");
}

// Returns OpenSSL's session of the handle's connection; NULL without TLS or with another TLS library.
static const void *tls_session(CURL *easy) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, find_tls) != 0) return NULL;
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

int ccurl_has_tls_ended(CURL *easy) {
    const void *session = tls_session(easy);
    if (session == NULL || tls.get_shutdown == NULL) return -1;
    const int received = 2;  // SSL_RECEIVED_SHUTDOWN, SSL_get_shutdown(3)
    return (tls.get_shutdown(session) & received) != 0;
}

int ccurl_has_chosen_http2(CURL *easy) {
    const void *session = tls_session(easy);
    if (session == NULL || tls.get_alpn == NULL) return 0;
    const unsigned char *name = NULL;
    unsigned int length = 0;
    tls.get_alpn(session, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

int ccurl_holds_tls_input(CURL *easy) {
    const void *session = tls_session(easy);
    return session != NULL && tls.has_pending != NULL && tls.has_pending(session) != 0;
}

// OpenSSL has no headers on a system that only builds with libcurl; these are its declarations.
static struct {
    const void *(*verified_chain)(const void *ssl);
    const void *(*sent_chain)(const void *ssl);
    int (*count)(const void *stack);
    void *(*value)(const void *stack, int index);
    int (*encode)(const void *certificate, unsigned char **to);
    void *(*decode)(void **certificate, const unsigned char **from, long length);
    void (*release)(void *certificate);
    int (*check_issued)(void *issuer, void *subject);
    int (*check_authority)(void *certificate);
    int (*verify)(void *certificate, void *key);
    void *(*key)(const void *certificate);
    int is_complete;
} x509;

static void find_x509(void) {
    const struct { const char *name; void **function; } functions[] = {
        {"SSL_get0_verified_chain", (void **)&x509.verified_chain},
        {"SSL_get_peer_cert_chain", (void **)&x509.sent_chain},
        {"OPENSSL_sk_num", (void **)&x509.count},
        {"OPENSSL_sk_value", (void **)&x509.value},
        {"i2d_X509", (void **)&x509.encode},
        {"d2i_X509", (void **)&x509.decode},
        {"X509_free", (void **)&x509.release},
        {"X509_check_issued", (void **)&x509.check_issued},
        {"X509_check_ca", (void **)&x509.check_authority},
        {"X509_verify", (void **)&x509.verify},
        {"X509_get0_pubkey", (void **)&x509.key},
    };
    x509.is_complete = 1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *functions[i].function = dlsym(RTLD_DEFAULT, functions[i].name);
        if (*functions[i].function == NULL) x509.is_complete = 0;
    }
}

static int take_certificate(const void *certificate, ccurl_certificate_handler handler, void *context) {
    const int length = x509.encode(certificate, NULL);
    if (length <= 0) return 0;
    unsigned char *bytes = malloc((size_t)length);
    if (bytes == NULL) return 0;
    unsigned char *end = bytes;
    const int written = x509.encode(certificate, &end);
    if (written == length) (void)handler(context, bytes, (size_t)length);  // returns nothing
    free(bytes);
    return written == length;
}

// Whether one certificate is that of an authority which signed the other. Dates are not checked.
static int has_issued(void *issuer, void *subject) {
    const int x509_v_ok = 0;
    if (x509.check_issued(issuer, subject) != x509_v_ok || x509.check_authority(issuer) < 1) return 0;
    void *key = x509.key(issuer);
    return key != NULL && x509.verify(subject, key) == 1;
}

static int find_functions(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, find_x509) == 0 && x509.is_complete;
}

int ccurl_copy_verified_chain(CURL *easy, ccurl_certificate_handler handler, void *context) {
    const void *session = tls_session(easy);
    if (session == NULL || !find_functions()) return 0;
    const void *chain = x509.verified_chain(session);
    const int count = chain == NULL ? 0 : x509.count(chain);
    for (int i = 0; i < count; i++) {
        if (!take_certificate(x509.value(chain, i), handler, context)) return 0;
    }
    return count > 0;
}

int ccurl_copy_linked_chain(
    CURL *easy, const struct ccurl_bytes *extra, size_t extra_count, ccurl_certificate_handler handler,
    void *context) {
    const void *session = tls_session(easy);
    if (session == NULL || !find_functions()) return 0;
    const void *sent = x509.sent_chain(session);
    const int sent_count = sent == NULL ? 0 : x509.count(sent);
    if (sent_count <= 0) return 0;
    void *current = x509.value(sent, 0);
    int is_complete = take_certificate(current, handler, context);
    // A chain is not longer than its candidates, so that two that issued each other end the search.
    for (int length = 1; is_complete && length < sent_count; length++) {
        void *issuer = NULL;
        for (int i = 1; i < sent_count && issuer == NULL; i++) {
            void *candidate = x509.value(sent, i);
            if (candidate != current && has_issued(candidate, current)) issuer = candidate;
        }
        if (issuer == NULL) break;
        current = issuer;
        is_complete = take_certificate(current, handler, context);
    }
    for (size_t i = 0; is_complete && i < extra_count; i++) {
        const unsigned char *bytes = extra[i].bytes;
        void *candidate = x509.decode(NULL, &bytes, (long)extra[i].length);
        if (candidate == NULL) continue;
        if (has_issued(candidate, current)) is_complete = take_certificate(candidate, handler, context);
        x509.release(candidate);
    }
    return is_complete;
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

char *ccurl_ascii_host(const char *host) {
    // libcurl's own conversion (CURLU_PUNYCODE) reads the name in the encoding of the process's locale. libidn2 has no
    // headers on a system that only builds with libcurl; this is its declaration.
    static const int nfc_input = 1, nontransitional = 8;  // IDN2_NFC_INPUT, IDN2_NONTRANSITIONAL
    int (*look_up)(const uint8_t *, uint8_t **, int) =
        (int (*)(const uint8_t *, uint8_t **, int))dlsym(RTLD_DEFAULT, "idn2_lookup_u8");
    void (*release)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "idn2_free");
    uint8_t *found = NULL;
    if (look_up == NULL || release == NULL) return NULL;
    if (look_up((const uint8_t *)host, &found, nfc_input | nontransitional) != 0 || found == NULL) return NULL;
    char *copy = strdup((const char *)found);
    (void)release(found);  // returns nothing
    return copy;
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

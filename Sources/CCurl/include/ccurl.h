// libcurl, with its variadic functions wrapped in typed functions that Swift can call.
#ifndef DLD_CCURL_H
#define DLD_CCURL_H

#include <curl/curl.h>

// Keeps OpenSSL's global memory allocated until the process ends. By default OpenSSL frees it within exit(3). Threads
// that are still closing connections would then use freed memory, or free their own part a second time. Call this
// before curl_global_init.
void ccurl_keep_openssl_at_exit(void);

// Returns the number of bytes of the public suffix at the end of a host name, such as 5 for www.example.co.uk, by the
// Public Suffix List of libpsl, with which libcurl is linked. The name is in lower case. Returns -1 without a list.
long ccurl_public_suffix_length(const char *host);

// Returns the version of the loaded libcurl, such as 7.88.1.
static inline const char *ccurl_version_number(void) { return curl_version_info(CURLVERSION_NOW)->version; }

static inline int ccurl_has_feature(int feature) {
    return (curl_version_info(CURLVERSION_NOW)->features & feature) != 0;
}

static inline int ccurl_has_http3(void) { return ccurl_has_feature(CURL_VERSION_HTTP3); }

static inline int ccurl_decodes_gzip(void) { return ccurl_has_feature(CURL_VERSION_LIBZ); }

static inline int ccurl_decodes_brotli(void) { return ccurl_has_feature(CURL_VERSION_BROTLI); }

static inline int ccurl_decodes_zstd(void) { return ccurl_has_feature(CURL_VERSION_ZSTD); }

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {.data = (void *)bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}

// The signature of the write, read and header callbacks.
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option, ccurl_data_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode ccurl_set_seek_callback(CURL *easy, curl_seek_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback) : code;
}

// Sets the callback that libcurl calls once a connection is established or reused, before it sends the first byte of
// the request.
static inline CURLcode ccurl_set_prerequest_callback(CURL *easy, curl_prereq_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback) : code;
}

// Rejects an SSH server's key for the known-hosts check of libcurl. With libssh2, libcurl never calls this: the
// callback set by ccurl_set_host_key_callback alone decides on the key, before authentication. With another SSH
// library, libcurl does not support that callback, so every key is rejected.
static inline int ccurl_refuse_known_host(
    CURL *easy, const struct curl_khkey *known, const struct curl_khkey *found, enum curl_khmatch match,
    void *context) {
    (void)easy, (void)known, (void)found, (void)match, (void)context;
    return CURLKHSTAT_REJECT;
}

static inline CURLcode ccurl_set_host_key_callback(CURL *easy, curl_sshhostkeycallback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSH_KEYFUNCTION, ccurl_refuse_known_host);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_SSH_HOSTKEYDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_SSH_HOSTKEYFUNCTION, callback) : code;
}

// Sets the callback that libcurl calls repeatedly during a transfer, also from within blocking calls. A result other
// than 0 aborts the transfer.
static inline CURLcode ccurl_set_progress_callback(CURL *easy, curl_xferinfo_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, callback) : code;
}

// Sets the callback that receives, among other things, each line exchanged with an FTP server (CURLOPT_DEBUGFUNCTION).
static inline CURLcode ccurl_set_debug_callback(CURL *easy, curl_debug_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_DEBUGDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, callback);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L) : code;
}

// Returns the name and version of the SSH library, such as libssh2/1.10.0; NULL if libcurl has none.
static inline const char *ccurl_ssh_library(void) { return curl_version_info(CURLVERSION_NOW)->libssh_version; }

static inline CURLcode ccurl_get_string(CURL *easy, CURLINFO info, const char **value) {
    return curl_easy_getinfo(easy, info, value);
}

// Returns the server's certificates from the TLS handshake of this handle; NULL if there was no handshake.
static inline struct curl_certinfo *ccurl_get_certificates(CURL *easy) {
    struct curl_certinfo *certificates = NULL;
    return curl_easy_getinfo(easy, CURLINFO_CERTINFO, &certificates) == CURLE_OK ? certificates : NULL;
}

// Converts a host name in UTF-8 to its ASCII form (RFC 5891, with the mapping of UTS 46). Returns NULL if the name is
// invalid, or if libcurl was built without libidn2; otherwise the caller frees the result.
char *ccurl_ascii_host(const char *host);

struct ccurl_bytes {
    const unsigned char *bytes;
    size_t length;
};

// Receives the DER encoding of one certificate.
typedef void (*ccurl_certificate_handler)(void *context, const unsigned char *bytes, size_t length);

// Passes on the chain that OpenSSL verified in the TLS handshake of this handle's connection: the server's own
// certificate first, its root last. Returns 0 if there is none: for a resumed TLS session, or another TLS library.
int ccurl_copy_verified_chain(CURL *easy, ccurl_certificate_handler handler, void *context);

// Passes on the certificates that the server sent as far as each issued the one before it, and those of `extra` (DER)
// that issued the last one. Signatures are verified, dates are not. Returns 0 if OpenSSL is not in use.
int ccurl_copy_linked_chain(
    CURL *easy, const struct ccurl_bytes *extra, size_t extra_count, ccurl_certificate_handler handler,
    void *context);

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, (char **)value);
}

// Gets the socket of a handle with CURLOPT_CONNECT_ONLY.
static inline CURLcode ccurl_get_socket(CURL *easy, curl_socket_t *value) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}

// Whether the handle's connection, to the server or to a proxy, uses TLS.
static inline int ccurl_carries_tls(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return 0;
    return session->internals != NULL;
}

// Whether the peer of the handle's connection has sent a TLS close_notify alert (RFC 8446, section 6.1): 1 or 0.
// Returns -1 if that is unknown, as without a connection or with a TLS library other than OpenSSL.
int ccurl_has_tls_ended(CURL *easy);

// Whether the server of the handle's connection chose HTTP/2 in the TLS handshake (ALPN, RFC 7301): 1 or 0. Returns 0
// with a TLS library other than OpenSSL.
int ccurl_has_chosen_http2(CURL *easy);

// Whether TLS has read bytes of the handle's connection that libcurl has not taken: 1 or 0. Returns 0 with a TLS library
// other than OpenSSL.
int ccurl_holds_tls_input(CURL *easy);

static inline CURLcode ccurl_set_open_socket_callback(
    CURL *easy, curl_opensocket_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback) : code;
}

static inline int ccurl_refuse_lookup(void *state, void *reserved, void *context) {
    (void)state, (void)reserved, (void)context;
    return 1;
}

// Makes every name look-up fail that the handle's own list of addresses does not cover.
static inline CURLcode ccurl_refuse_lookups(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, ccurl_refuse_lookup);
}

// Copies the IP address that libcurl is about to open a socket for, in network byte order: 4 or 16 bytes.
//
// Returns the number of bytes; 0 if the address is neither IPv4 nor IPv6.
int ccurl_copy_address(const struct curl_sockaddr *address, unsigned char bytes[16]);

// Opens a socket for an address as libcurl would, with close-on-exec set.
curl_socket_t ccurl_open_socket(const struct curl_sockaddr *address);

static inline CURLcode ccurl_set_socket_option_callback(
    CURL *easy, curl_sockopt_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, callback) : code;
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, curl_socket_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    return code == CURLM_OK ? curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback) : code;
}

static inline CURLMcode ccurl_multi_set_timer_callback(
    CURLM *multi, curl_multi_timer_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
    return code == CURLM_OK ? curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback) : code;
}

// Returns the handle of a completed transfer and stores its result; NULL if there is none. Swift cannot access the
// anonymous union in CURLMsg.
static inline CURL *ccurl_multi_next_done(CURLM *multi, CURLcode *result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            *result = message->data.result;
            return message->easy_handle;
        }
    }
    return NULL;
}

#endif

import CCurl

/// Options of an easy handle, by the type of their value.
package enum EasyOption {
    package struct Text: Sendable {
        let option: CURLoption
        package static let url = Text(option: CURLOPT_URL)
        package static let method = Text(option: CURLOPT_CUSTOMREQUEST)
        package static let user = Text(option: CURLOPT_USERNAME)
        package static let password = Text(option: CURLOPT_PASSWORD)
        package static let proxy = Text(option: CURLOPT_PROXY)
        /// The hosts that bypass the proxy. If unset, libcurl reads them from the environment.
        package static let noProxy = Text(option: CURLOPT_NOPROXY)
        package static let protocols = Text(option: CURLOPT_PROTOCOLS_STR)
        package static let caFile = Text(option: CURLOPT_CAINFO)
        package static let caPath = Text(option: CURLOPT_CAPATH)
        package static let proxyCAFile = Text(option: CURLOPT_PROXY_CAINFO)
        package static let proxyCAPath = Text(option: CURLOPT_PROXY_CAPATH)
        package static let crlFile = Text(option: CURLOPT_CRLFILE)
        package static let pinnedPublicKey = Text(option: CURLOPT_PINNEDPUBLICKEY)
        package static let certificateType = Text(option: CURLOPT_SSLCERTTYPE)
        package static let keyPassphrase = Text(option: CURLOPT_KEYPASSWD)
        package static let acceptEncoding = Text(option: CURLOPT_ACCEPT_ENCODING)
    }

    package struct Number: Sendable {
        let option: CURLoption
        package static let noSignal = Number(option: CURLOPT_NOSIGNAL)
        package static let bufferSize = Number(option: CURLOPT_BUFFERSIZE)
        package static let uploadBufferSize = Number(option: CURLOPT_UPLOAD_BUFFERSIZE)
        package static let connectTimeout = Number(option: CURLOPT_CONNECTTIMEOUT_MS)
        package static let followLocation = Number(option: CURLOPT_FOLLOWLOCATION)
        package static let httpVersion = Number(option: CURLOPT_HTTP_VERSION)
        package static let upload = Number(option: CURLOPT_UPLOAD)
        package static let post = Number(option: CURLOPT_POST)
        package static let tcpKeepAlive = Number(option: CURLOPT_TCP_KEEPALIVE)
        package static let http09 = Number(option: CURLOPT_HTTP09_ALLOWED)
        package static let suppressConnectHeaders = Number(option: CURLOPT_SUPPRESS_CONNECT_HEADERS)
        package static let netrc = Number(option: CURLOPT_NETRC)
        /// The schemes by which libcurl itself authenticates to the server (CURLAUTH_*).
        package static let authentication = Number(option: CURLOPT_HTTPAUTH)
        /// The schemes by which libcurl itself authenticates to the proxy (CURLAUTH_*).
        package static let proxyAuthentication = Number(option: CURLOPT_PROXYAUTH)
        package static let noBody = Number(option: CURLOPT_NOBODY)
        package static let verifyPeer = Number(option: CURLOPT_SSL_VERIFYPEER)
        package static let verifyHost = Number(option: CURLOPT_SSL_VERIFYHOST)
        package static let verifyStatus = Number(option: CURLOPT_SSL_VERIFYSTATUS)
        package static let certificateInformation = Number(option: CURLOPT_CERTINFO)
        package static let sessionCache = Number(option: CURLOPT_SSL_SESSIONID_CACHE)
        package static let freshConnection = Number(option: CURLOPT_FRESH_CONNECT)
        package static let forbidReuse = Number(option: CURLOPT_FORBID_REUSE)
        package static let pipeWait = Number(option: CURLOPT_PIPEWAIT)
        package static let connectOnly = Number(option: CURLOPT_CONNECT_ONLY)
        package static let httpProxyTunnel = Number(option: CURLOPT_HTTPPROXYTUNNEL)
        package static let enableALPN = Number(option: CURLOPT_SSL_ENABLE_ALPN)
    }

    package struct Offset: Sendable {
        let option: CURLoption
        package static let uploadSize = Offset(option: CURLOPT_INFILESIZE_LARGE)
    }

    /// Bytes that libcurl copies.
    package struct Blob: Sendable {
        let option: CURLoption
        package static let caCertificates = Blob(option: CURLOPT_CAINFO_BLOB)
        package static let proxyCACertificates = Blob(option: CURLOPT_PROXY_CAINFO_BLOB)
        package static let certificate = Blob(option: CURLOPT_SSLCERT_BLOB)
        package static let key = Blob(option: CURLOPT_SSLKEY_BLOB)
    }
}

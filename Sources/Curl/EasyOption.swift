import CCurl

/// Options of an easy handle, by the type of what they take.
package enum EasyOption {
    package struct Text: Sendable {
        let option: CURLoption
        package static let url = Text(option: CURLOPT_URL)
        package static let method = Text(option: CURLOPT_CUSTOMREQUEST)
        package static let user = Text(option: CURLOPT_USERNAME)
        package static let password = Text(option: CURLOPT_PASSWORD)
        package static let proxy = Text(option: CURLOPT_PROXY)
        package static let protocols = Text(option: CURLOPT_PROTOCOLS_STR)
        package static let caFile = Text(option: CURLOPT_CAINFO)
    }

    package struct Number: Sendable {
        let option: CURLoption
        package static let noSignal = Number(option: CURLOPT_NOSIGNAL)
        package static let bufferSize = Number(option: CURLOPT_BUFFERSIZE)
        package static let uploadBufferSize = Number(option: CURLOPT_UPLOAD_BUFFERSIZE)
        package static let connectTimeout = Number(option: CURLOPT_CONNECTTIMEOUT_MS)
        package static let followLocation = Number(option: CURLOPT_FOLLOWLOCATION)
        package static let httpVersion = Number(option: CURLOPT_HTTP_VERSION)
        package static let httpAuth = Number(option: CURLOPT_HTTPAUTH)
        package static let upload = Number(option: CURLOPT_UPLOAD)
        package static let post = Number(option: CURLOPT_POST)
        package static let tcpKeepAlive = Number(option: CURLOPT_TCP_KEEPALIVE)
        package static let http09 = Number(option: CURLOPT_HTTP09_ALLOWED)
        package static let suppressConnectHeaders = Number(option: CURLOPT_SUPPRESS_CONNECT_HEADERS)
        package static let netrc = Number(option: CURLOPT_NETRC)
        package static let connectOnly = Number(option: CURLOPT_CONNECT_ONLY)
        package static let httpProxyTunnel = Number(option: CURLOPT_HTTPPROXYTUNNEL)
        package static let enableALPN = Number(option: CURLOPT_SSL_ENABLE_ALPN)
    }

    package struct Offset: Sendable {
        let option: CURLoption
        package static let uploadSize = Offset(option: CURLOPT_INFILESIZE_LARGE)
        package static let postSize = Offset(option: CURLOPT_POSTFIELDSIZE_LARGE)
    }
}

import CCurl

extension CurlError {
    /// A result code of libcurl, named after its `CURLE_` constant.
    package struct Code: Sendable, Equatable, CustomStringConvertible {
        package let rawValue: UInt32

        init(_ code: CURLcode) { rawValue = code.rawValue }

        package var description: String { String(rawValue) }

        package static let abortedByCallback = Code(CURLE_ABORTED_BY_CALLBACK)
        package static let badDownloadResume = Code(CURLE_BAD_DOWNLOAD_RESUME)
        package static let chunkFailed = Code(CURLE_CHUNK_FAILED)
        package static let couldntConnect = Code(CURLE_COULDNT_CONNECT)
        package static let couldntResolveHost = Code(CURLE_COULDNT_RESOLVE_HOST)
        package static let couldntResolveProxy = Code(CURLE_COULDNT_RESOLVE_PROXY)
        package static let failedInit = Code(CURLE_FAILED_INIT)
        package static let filesizeExceeded = Code(CURLE_FILESIZE_EXCEEDED)
        package static let ftpAcceptFailed = Code(CURLE_FTP_ACCEPT_FAILED)
        package static let ftpCantGetHost = Code(CURLE_FTP_CANT_GET_HOST)
        package static let ftpCouldntRetrFile = Code(CURLE_FTP_COULDNT_RETR_FILE)
        package static let ftpCouldntSetType = Code(CURLE_FTP_COULDNT_SET_TYPE)
        package static let ftpCouldntUseRest = Code(CURLE_FTP_COULDNT_USE_REST)
        package static let ftpPortFailed = Code(CURLE_FTP_PORT_FAILED)
        package static let ftpPretFailed = Code(CURLE_FTP_PRET_FAILED)
        package static let ftpWeird227Format = Code(CURLE_FTP_WEIRD_227_FORMAT)
        package static let ftpWeirdPassReply = Code(CURLE_FTP_WEIRD_PASS_REPLY)
        package static let ftpWeirdPasvReply = Code(CURLE_FTP_WEIRD_PASV_REPLY)
        package static let gotNothing = Code(CURLE_GOT_NOTHING)
        package static let http2 = Code(CURLE_HTTP2)
        package static let http2Stream = Code(CURLE_HTTP2_STREAM)
        package static let http3 = Code(CURLE_HTTP3)
        package static let loginDenied = Code(CURLE_LOGIN_DENIED)
        package static let notBuiltIn = Code(CURLE_NOT_BUILT_IN)
        package static let operationTimedout = Code(CURLE_OPERATION_TIMEDOUT)
        package static let outOfMemory = Code(CURLE_OUT_OF_MEMORY)
        package static let partialFile = Code(CURLE_PARTIAL_FILE)
        package static let peerFailedVerification = Code(CURLE_PEER_FAILED_VERIFICATION)
        package static let proxy = Code(CURLE_PROXY)
        package static let quoteError = Code(CURLE_QUOTE_ERROR)
        package static let recvError = Code(CURLE_RECV_ERROR)
        package static let remoteAccessDenied = Code(CURLE_REMOTE_ACCESS_DENIED)
        package static let remoteDiskFull = Code(CURLE_REMOTE_DISK_FULL)
        package static let remoteFileExists = Code(CURLE_REMOTE_FILE_EXISTS)
        package static let remoteFileNotFound = Code(CURLE_REMOTE_FILE_NOT_FOUND)
        package static let sendError = Code(CURLE_SEND_ERROR)
        package static let ssh = Code(CURLE_SSH)
        package static let sslCACertBadfile = Code(CURLE_SSL_CACERT_BADFILE)
        package static let sslCRLBadfile = Code(CURLE_SSL_CRL_BADFILE)
        package static let sslCertproblem = Code(CURLE_SSL_CERTPROBLEM)
        package static let sslCipher = Code(CURLE_SSL_CIPHER)
        package static let sslClientcert = Code(CURLE_SSL_CLIENTCERT)
        package static let sslConnectError = Code(CURLE_SSL_CONNECT_ERROR)
        package static let sslEngineInitfailed = Code(CURLE_SSL_ENGINE_INITFAILED)
        package static let sslEngineNotfound = Code(CURLE_SSL_ENGINE_NOTFOUND)
        package static let sslEngineSetfailed = Code(CURLE_SSL_ENGINE_SETFAILED)
        package static let sslInvalidcertstatus = Code(CURLE_SSL_INVALIDCERTSTATUS)
        package static let sslIssuerError = Code(CURLE_SSL_ISSUER_ERROR)
        package static let sslPinnedpubkeynotmatch = Code(CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        package static let sslShutdownFailed = Code(CURLE_SSL_SHUTDOWN_FAILED)
        package static let unsupportedProtocol = Code(CURLE_UNSUPPORTED_PROTOCOL)
        package static let uploadFailed = Code(CURLE_UPLOAD_FAILED)
        package static let urlMalformat = Code(CURLE_URL_MALFORMAT)
        package static let useSSLFailed = Code(CURLE_USE_SSL_FAILED)
        package static let badFunctionArgument = Code(CURLE_BAD_FUNCTION_ARGUMENT)
        package static let weirdServerReply = Code(CURLE_WEIRD_SERVER_REPLY)
    }
}

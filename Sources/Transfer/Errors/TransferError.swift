import Curl

#if canImport(Glibc)
import Glibc
#endif

/// The error of a failed transfer.
public struct TransferError: Error, Sendable, Equatable, CustomStringConvertible {
    /// An error code from a bounded set, suitable for metrics and for `switch` statements.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The caller cancelled the transfer, or the session was invalidated.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The request is invalid, for example its URL, a field or a parameter.
        public static let invalidRequest = Code(rawValue: "invalid")
        /// The host name does not exist.
        public static let unknownHost = Code(rawValue: "dns")
        /// All resolvers failed to respond, so the existence of the host name is unknown.
        public static let resolverUnavailable = Code(rawValue: "resolver-unavailable")
        /// This machine has no route to the address.
        public static let unreachable = Code(rawValue: "unreachable")
        /// A connection could not be established, or it broke before a response.
        public static let cannotConnect = Code(rawValue: "connect")
        /// TLS failed, most often because of the server's certificate.
        public static let tls = Code(rawValue: "tls")
        /// The connection was not established within ``SessionConfiguration/connectTimeout``, or the request took
        /// longer than its ``TransferRequest/totalTimeout``.
        public static let timedOut = Code(rawValue: "timeout")
        /// The transfer made no progress for ``SessionConfiguration/stallTimeout`` or the request's
        /// ``TransferRequest/timeout``.
        public static let stalled = Code(rawValue: "stalled")
        /// The body ended prematurely.
        public static let truncated = Code(rawValue: "truncated")
        /// The cache has no usable response, and the request forbids contacting the server.
        public static let notCached = Code(rawValue: "not-cached")
        /// The number of redirects exceeded ``SessionConfiguration/maximumRedirects``.
        public static let tooManyRedirects = Code(rawValue: "too-many-redirects")
        /// The scheme is not supported, or a redirect from https to http was not allowed.
        public static let protocolNotAllowed = Code(rawValue: "protocol-not-allowed")
        /// Every address of the server is in a network of ``SessionConfiguration/deniedNetworks``.
        public static let addressNotAllowed = Code(rawValue: "address-not-allowed")
        /// The complete file was received, but its digest differs from the expected one.
        public static let checksumMismatch = Code(rawValue: "checksum-mismatch")
        /// The server's version of the resource differs from the one that the part file was started from.
        public static let remoteChanged = Code(rawValue: "remote-changed")
        /// The response's status is not a success; see ``TransferError/httpStatus``.
        public static let httpStatus = Code(rawValue: "http")
        /// The file does not exist on the file server.
        public static let notFound = Code(rawValue: "not-found")
        /// The file server refused the user, password or key.
        public static let loginRefused = Code(rawValue: "login-refused")
        /// The identity of an SSH server could not be verified. The code is the same as ``tls``.
        public static let hostKey = tls
        /// The file server has no space left, or the user's quota is exhausted.
        public static let remoteFull = Code(rawValue: "quota")
        /// The destination's name is taken and the existing file must not be replaced, because of
        /// ``FileDestination/Conflict/fail`` or because ``DownloadOptions/removePreviousFile`` is not set.
        /// The code is also used if a file server does not let an upload replace an existing file.
        public static let nameConflict = Code(rawValue: "name-conflict")
        /// The destination directory does not exist, and the options do not allow its creation.
        public static let directoryMissing = Code(rawValue: "directory-missing")
        /// A closure that determines the destination threw an error; see ``TransferError/underlying``.
        public static let destinationRefused = Code(rawValue: "destination-refused")
        /// A path leads outside its directory or through a symbolic link.
        public static let pathNotAllowed = Code(rawValue: "path-not-allowed")
        /// The file system is full, or the user's quota is exhausted.
        public static let diskFull = Code(rawValue: "disk-full")
        /// The ``StorageAllowance`` of the download's ``DownloadTarget/share`` has too few bytes left.
        public static let allowanceUsedUp = Code(rawValue: "allowance")
        /// The system denied the process permission, or a file server denied it to the user.
        public static let permissionDenied = Code(rawValue: "permission-denied")
        /// A system call failed for another reason; see ``TransferError/systemError``.
        public static let io = Code(rawValue: "io")
        /// The file system of a download's directory was unmounted. This is a case of ``io`` with a code of its own;
        /// ``TransferError/underlying`` is a ``DetachedVolume``. The received bytes remain on that file system.
        public static let volumeDetached = Code(rawValue: "volume-detached")
        /// The download's part file is in use by another process.
        public static let partInUse = Code(rawValue: "part-in-use")
        /// The file to upload has changed or been removed.
        public static let sourceChanged = Code(rawValue: "source-changed")
        /// The open file passed for an upload was closed before it was sent.
        package static let sourceLost = Code(rawValue: "source-lost")
        /// The size exceeds the limit of the request, the session or the file system.
        public static let tooLarge = Code(rawValue: "too-large")
        /// The response's media type is not among the requested ones.
        public static let unacceptableContentType = Code(rawValue: "unacceptable-content-type")
        /// The source of the request's body failed.
        public static let bodyStreamFailed = Code(rawValue: "body-stream")
        /// The body cannot be decoded into the requested type; see ``TransferError/underlying``.
        public static let serializationFailed = Code(rawValue: "serialization")
        /// A validator of the caller rejected the response; see ``TransferError/underlying``.
        public static let validationFailed = Code(rawValue: "validation")
        /// The token could not be obtained; see ``TransferError/underlying``.
        public static let authenticationFailed = Code(rawValue: "authentication")
        /// The session was invalidated and accepts no tasks.
        public static let invalidated = Code(rawValue: "invalidated")
        /// An internal error: a defect of the engine, or a system without free threads or file descriptors.
        public static let `internal` = Code(rawValue: "internal")

        /// Whether the connection was lost for a reason outside the engine.
        var isBrokenConnection: Bool { self == .truncated || self == .cannotConnect || self == .stalled }
    }

    /// The kind of failure.
    public var code: Code
    /// A one-line message for people, without secrets.
    public var message: String
    /// The response's status, if the response failed because of it.
    public var httpStatus: Int?
    /// The back-off requested by the server, in seconds (RFC 9110, section 10.2.3).
    public var retryAfter: Int64?
    /// The `errno` of a failed system call.
    public var systemError: Int32?
    /// The code with which libcurl ended the exchange (libcurl-errors); `nil` if another part of the engine found the
    /// failure.
    package private(set) var libcurlCode: UInt8?
    /// The server that was contacted at the failure, as scheme, name and port, such as `https://example.org:443`. After
    /// a redirect or with mirrors, it may differ from the request's own server.
    public internal(set) var origin: String?
    /// Whether the proxy in front of the server accepted no connection. ``origin`` is the proxy then.
    package private(set) var isOfProxy = false
    /// The state from which another attempt can resume a download.
    public var resumeData: ResumeData? {
        get { rest?.value }
        set { rest = newValue.map { CopyOnWrite($0) } }
    }
    /// The resume data, stored on the heap. Each transfer has storage for several errors, but few errors occur.
    private var rest: CopyOnWrite<ResumeData>?
    /// The original error, if the failure originates outside the engine.
    public var underlying: (any Error)?

    /// Creates an error, for adapters, validators and body sources that fail a request.
    public init(
        _ code: Code, _ message: String, httpStatus: Int? = nil, retryAfter: Int64? = nil, systemError: Int32? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.httpStatus = httpStatus
        self.retryAfter = retryAfter
        self.systemError = systemError
        self.underlying = underlying
    }

    /// Returns the error with `origin` as its server, unless it already has one.
    func named(by origin: String?) -> TransferError {
        guard self.origin == nil, code != .cancelled, let origin else { return self }
        var error = self
        error.origin = origin
        return error
    }

    /// Returns the error with the server of `url` as its origin, unless it already has one.
    func named(byServerOf url: @autoclosure () -> String) -> TransferError {
        guard origin == nil, code != .cancelled else { return self }
        return named(by: (try? CurlURL(url()))?.origin)
    }

    /// Returns the error as one of the proxy at `origin`.
    func ofProxy(_ origin: String?) -> TransferError {
        var error = self
        error.origin = origin
        error.isOfProxy = true
        return error
    }

    /// Returns the error with the code of the libcurl error that caused it.
    func caused(by error: CurlError) -> TransferError {
        var caused = self
        caused.libcurlCode = UInt8(exactly: error.code.rawValue)
        return caused
    }

    /// Compares all properties except ``underlying``, ``origin`` and the code of libcurl.
    public static func == (left: TransferError, right: TransferError) -> Bool {
        left.code == right.code && left.message == right.message && left.httpStatus == right.httpStatus
            && left.retryAfter == right.retryAfter && left.systemError == right.systemError
            && left.resumeData == right.resumeData
    }

    public var description: String { message }

    /// Returns a time for messages: in whole seconds if it has no fraction.
    static func duration(_ milliseconds: Int64) -> String {
        milliseconds.isMultiple(of: 1000) ? "\(milliseconds / 1000) seconds" : "\(milliseconds) ms"
    }

    /// Returns the error of a failed file operation.
    ///
    /// - Parameter doing: The operation, such as `write the part file`.
    static func file(_ error: Int32, doing: String) -> TransferError {
        let code: Code =
            switch error {
            case ENOSPC, EDQUOT: .diskFull
            case EACCES, EPERM: .permissionDenied
            case EFBIG: .tooLarge
            case ELOOP, EXDEV, ENOTDIR, ENAMETOOLONG, EILSEQ: .pathNotAllowed
            case EISDIR: .nameConflict
            default: .io
            }
        let cause =
            error == ELOOP
            ? "a symbolic link stands in the path, and none is followed here; name the directory that it leads to"
            : String(cString: strerror(error))
        return TransferError(code, "cannot \(doing): \(cause)", systemError: error)
    }

    /// Returns the error of a failed exchange.
    ///
    /// - Parameter bodyBegun: Whether bytes of the body were received. If so, a broken connection is a truncated body.
    static func exchange(_ error: CurlError, bodyBegun: Bool, host: String) -> TransferError {
        // The numbers are the error codes of libcurl's public interface (libcurl-errors).
        switch error.code {
        case _ where error.isFlood:
            TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host): \(error.message)")
        // Unsupported schemes are rejected earlier. The cause here is a response in an unknown HTTP version.
        case .unsupportedProtocol, .weirdServerReply:
            TransferError(.truncated, "\(host) sent an invalid HTTP response: \(error.message)")
        case .badFunctionArgument:
            TransferError(.truncated, "\(host) sent an invalid HTTP response: its first header line continues another")
        case .urlMalformat: TransferError(.invalidRequest, "libcurl cannot read the URL")
        case .couldntResolveProxy: TransferError(.unknownHost, "the proxy's name does not resolve")
        case .couldntResolveHost: TransferError(.unknownHost, "the name \(host) does not resolve")
        case .couldntConnect: TransferError(.cannotConnect, "cannot connect to \(host): is the server up?")
        case .operationTimedout: TransferError(.timedOut, "no connection to \(host) within the connect timeout")
        case .sslConnectError, .sslEngineNotfound, .sslEngineSetfailed, .sslCertproblem, .sslCipher,
            .peerFailedVerification, .sslEngineInitfailed, .sslCACertBadfile, .sslShutdownFailed, .sslCRLBadfile,
            .sslIssuerError, .sslPinnedpubkeynotmatch, .sslInvalidcertstatus, .sslClientcert:
            TransferError(.tls, "TLS with \(host) failed: \(error.message)")
        // The head was not accepted.
        case .writeError where !bodyBegun:
            TransferError(.truncated, "\(host) sent an invalid HTTP response: its head cannot be read")
        case .recvError where error.message.firstRange(of: "chunked-encoding") != nil:
            TransferError(.truncated, "\(host) sent an invalid HTTP response: \(error.message)")
        case .partialFile: TransferError(.truncated, "the connection was closed before the end of the body")
        case .gotNothing, .sendError, .recvError, .http2Stream, .http3, .http2:
            bodyBegun
                ? TransferError(.truncated, "the connection to \(host) was lost: \(error.message)")
                : TransferError(
                    .cannotConnect, "the connection to \(host) was lost before a response: \(error.message)")
        // CURLE_OUT_OF_MEMORY also reports a header line beyond libcurl's limit.
        case .outOfMemory: TransferError(.tooLarge, "a header line of \(host) is too long")
        default: TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host): \(error.message)")
        }
    }
}

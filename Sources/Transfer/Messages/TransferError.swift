import Curl

#if canImport(Glibc)
import Glibc
#endif

/// Why a transfer did not succeed.
public struct TransferError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A bounded set of words, fit for metrics and for switching on.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// By the caller, or since the session was invalidated.
        public static let cancelled = Code(rawValue: "cancelled")
        /// What was asked for cannot be asked for: a URL, a field or a parameter is no such thing.
        public static let invalidRequest = Code(rawValue: "invalid")
        /// The name does not exist.
        public static let unknownHost = Code(rawValue: "dns")
        /// No resolver answers: nothing is known of the name.
        public static let resolverUnavailable = Code(rawValue: "resolver-unavailable")
        /// This machine has no way to the address.
        public static let unreachable = Code(rawValue: "unreachable")
        /// No connection, or one that broke before an answer.
        public static let cannotConnect = Code(rawValue: "connect")
        /// TLS failed, most often for the server's certificate.
        public static let tls = Code(rawValue: "tls")
        /// No connection within ``SessionConfiguration/connectTimeout``.
        public static let timedOut = Code(rawValue: "timeout")
        /// No byte for the stall timeout.
        public static let stalled = Code(rawValue: "stalled")
        /// The body ended before its end.
        public static let truncated = Code(rawValue: "truncated")
        /// Nothing that is stored will do, and the request forbids asking the server.
        public static let notCached = Code(rawValue: "not-cached")
        /// More than ``SessionConfiguration/maximumRedirects``.
        public static let tooManyRedirects = Code(rawValue: "too-many-redirects")
        /// A scheme that the engine does not speak, or a redirect from https to http that was not allowed.
        public static let protocolNotAllowed = Code(rawValue: "protocol-not-allowed")
        /// Every address of the server lies in a network of ``SessionConfiguration/deniedNetworks``.
        public static let addressNotAllowed = Code(rawValue: "address-not-allowed")
        /// The whole file came, and is not the one whose digest was given.
        public static let checksumMismatch = Code(rawValue: "checksum-mismatch")
        /// What the server has now is not what the part file was begun from.
        public static let remoteChanged = Code(rawValue: "remote-changed")
        /// The answer's status is not a success; see ``TransferError/httpStatus``.
        public static let httpStatus = Code(rawValue: "http")
        /// A file server has no such file.
        public static let notFound = Code(rawValue: "not-found")
        /// A file server does not know who wants to enter, or not by this password or key.
        public static let loginRefused = Code(rawValue: "login-refused")
        /// An SSH server is not proved to be the one that is meant: a case of ``tls``, and the same word.
        public static let hostKey = tls
        /// A file server has no room, or not for this user.
        public static let remoteFull = Code(rawValue: "quota")
        /// The destination's name is taken, and what has it is not to be replaced, by ``FileDestination/Conflict/fail``
        /// or for want of ``DownloadDestination/Options/removePreviousFile``. Also where a file server keeps a file that
        /// an upload was to replace.
        public static let nameConflict = Code(rawValue: "name-conflict")
        /// The directory that a file was to go to is not there, and was not to be made.
        public static let directoryMissing = Code(rawValue: "directory-missing")
        /// A closure that was to say where the file goes threw; see ``TransferError/underlying``.
        public static let destinationRefused = Code(rawValue: "destination-refused")
        /// A path leads outside of its directory or through a link.
        public static let pathNotAllowed = Code(rawValue: "path-not-allowed")
        /// No room on the file system, or none in the user's quota.
        public static let diskFull = Code(rawValue: "disk-full")
        /// The ``StorageAllowance`` of a download's ``DownloadTarget/share`` has not so many bytes left.
        public static let allowanceUsedUp = Code(rawValue: "allowance")
        /// The system does not let this process do that, or a file server does not let this user.
        public static let permissionDenied = Code(rawValue: "permission-denied")
        /// Another call of the system failed; see ``TransferError/systemError``.
        public static let io = Code(rawValue: "io")
        /// The file system that a download's directory is on was taken off its place: a case of ``io`` with a word of its
        /// own; ``TransferError/underlying`` is a ``DetachedVolume``. What came is kept there.
        public static let volumeDetached = Code(rawValue: "volume-detached")
        /// Another process is at work on the download's part file.
        public static let partInUse = Code(rawValue: "part-in-use")
        /// The file to upload is not the one it was, or is gone.
        public static let sourceChanged = Code(rawValue: "source-changed")
        /// The open file that was passed for an upload was closed before it was sent.
        package static let sourceLost = Code(rawValue: "source-lost")
        /// More bytes than the request, the session or the file system allows.
        public static let tooLarge = Code(rawValue: "too-large")
        /// The answer's type is none that was asked for.
        public static let unacceptableContentType = Code(rawValue: "unacceptable-content-type")
        /// What makes the request's body did not make it.
        public static let bodyStreamFailed = Code(rawValue: "body-stream")
        /// The body cannot be made into what was wanted; see ``TransferError/underlying``.
        public static let serializationFailed = Code(rawValue: "serialization")
        /// A validator of the caller's; see ``TransferError/underlying``.
        public static let validationFailed = Code(rawValue: "validation")
        /// There is no token to be had; see ``TransferError/underlying``.
        public static let authenticationFailed = Code(rawValue: "authentication")
        /// The session no longer takes tasks.
        public static let invalidated = Code(rawValue: "invalidated")
        /// What should not be: a defect of the engine, or a system without threads or descriptors to give.
        public static let `internal` = Code(rawValue: "internal")

        /// The connection went away, and not by our doing.
        var isBrokenConnection: Bool { self == .truncated || self == .cannotConnect || self == .stalled }
    }

    /// What kind of failure it is.
    public var code: Code
    /// One line for a person, without secrets.
    public var message: String
    /// The answer's status, where there was an answer that failed for it.
    public var httpStatus: Int?
    /// Seconds that the server asked to be left alone (RFC 9110, section 10.2.3).
    public var retryAfter: Int64?
    /// Where a call of the system failed: its `errno`.
    public var systemError: Int32?
    /// The server that was asked when it failed: scheme, name and port, as in `https://example.org:443`. After a redirect,
    /// and with mirrors, that is another one than the request's own.
    public internal(set) var origin: String?
    /// Of a download: what another attempt can go on with.
    public var resumeData: ResumeData? {
        get { rest?.value }
        set { rest = newValue.map { CopyOnWrite($0) } }
    }
    /// Aside: there is room for several errors in each transfer, and few of them come.
    private var rest: CopyOnWrite<ResumeData>?
    /// What lies behind it, where that is not the engine's own.
    public var underlying: (any Error)?

    /// For adapters, validators and sources of bodies, which fail a request with errors of their own.
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

    /// The error as one of `origin`'s, where it is not known to be another's.
    func named(by origin: String?) -> TransferError {
        guard self.origin == nil, code != .cancelled, let origin else { return self }
        var error = self
        error.origin = origin
        return error
    }

    /// The error as one of the server of `url`, where it is not known to be another's.
    func named(byServerOf url: @autoclosure () -> String) -> TransferError {
        guard origin == nil, code != .cancelled else { return self }
        return named(by: (try? CurlURL(url()))?.origin)
    }

    /// Errors are equal whatever lies behind them, and whoever's they are.
    public static func == (left: TransferError, right: TransferError) -> Bool {
        left.code == right.code && left.message == right.message && left.httpStatus == right.httpStatus
            && left.retryAfter == right.retryAfter && left.systemError == right.systemError
            && left.resumeData == right.resumeData
    }

    public var description: String { message }

    /// A failed call on a file.
    ///
    /// - Parameter doing: what was tried, as in `write the part file`.
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
        return TransferError(code, "cannot \(doing): \(String(cString: strerror(error)))", systemError: error)
    }

    /// A path no longer leads to the file system that a download's bytes are on.
    public static func detached(_ volume: DetachedVolume) -> TransferError {
        TransferError(
            .volumeDetached,
            "the file system that held \(volume.path) was taken off its place; mount it again and the download goes on",
            underlying: volume)
    }

    /// A failed exchange.
    ///
    /// - Parameter bodyBegun: whether bytes of the body had come: a broken connection then is a cut one.
    static func exchange(_ error: CurlError, bodyBegun: Bool, host: String) -> TransferError {
        // The numbers are those of libcurl's public interface (libcurl-errors).
        switch error.code {
        case _ where error.isFlood:
            TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host): \(error.message)")
        // A scheme that libcurl lacks never gets here; what does is an answer in no known version of HTTP.
        case 1, 8: TransferError(.truncated, "what \(host) sent is no HTTP answer: \(error.message)")
        case 3: TransferError(.invalidRequest, "libcurl cannot read the URL")
        case 5: TransferError(.unknownHost, "the proxy's name does not resolve")
        case 6: TransferError(.unknownHost, "the name \(host) does not resolve")
        case 7: TransferError(.cannotConnect, "cannot connect to \(host): is the server up?")
        case 28: TransferError(.timedOut, "no connection to \(host) within the connect timeout")
        case 35, 51, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 98:
            TransferError(.tls, "TLS with \(host) failed: \(error.message)")
        case 18: TransferError(.truncated, "the connection was closed before the end of the body")
        case 52, 55, 56, 92, 95, 16:
            bodyBegun
                ? TransferError(.truncated, "the connection to \(host) broke: \(error.message)")
                : TransferError(.cannotConnect, "the connection to \(host) broke before an answer: \(error.message)")
        // What else it has no memory for is a header line past its limit.
        case 27: TransferError(.tooLarge, "a header line of \(host) is too long")
        default: TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host): \(error.message)")
        }
    }
}

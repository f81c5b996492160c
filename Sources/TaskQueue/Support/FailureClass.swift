import TaskModel

/// A class of failures in metrics. The set is bounded, unlike the error codes with their HTTP statuses.
enum FailureClass: String, CaseIterable {
    case dns, connect, tls, timeout, truncated
    case clientError = "http_4xx"
    case serverError = "http_5xx"
    case otherStatus = "http_other"
    case redirect, checksum
    /// The content changed, or the transfer cannot be continued.
    case changed
    /// A rule of the configuration forbids the transfer.
    case policy
    case diskFull = "disk_full"
    case file
    /// A quota or a maximum size.
    case limit
    case other

    init(_ code: ErrorCode) {
        self =
            switch code {
            case .dns: .dns
            case .connect: .connect
            case .tls: .tls
            case .timeout, .stalled: .timeout
            case .truncated: .truncated
            case .tooManyRedirects: .redirect
            case .checksumMismatch, .checksumMissing: .checksum
            case .remoteChanged, .notResumable, .sourceChanged, .sourceLost: .changed
            case .protocolNotAllowed, .addressNotAllowed: .policy
            case .diskFull: .diskFull
            case .io, .permissionDenied, .pathNotAllowed, .nameConflict, .partInUse: .file
            case .tooLarge, .quota: .limit
            default: Self.ofStatus(code.rawValue)
            }
    }

    private static func ofStatus(_ word: String) -> FailureClass {
        guard word.hasPrefix("http-"), let status = Int(word.dropFirst("http-".count)) else { return .other }
        return switch status {
        case 400...499: .clientError
        case 500...599: .serverError
        default: .otherStatus
        }
    }
}

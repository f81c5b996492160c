import Curl

extension TransferError {
    /// Returns the error of a failed exchange with a file server.
    ///
    /// - Parameters:
    ///   - reply: The last reply of an FTP server.
    ///   - bodyBegun: Whether bytes of the file were received or sent.
    ///   - isOpened: Whether an SFTP server had opened a file of which no bytes were received.
    ///   - isStoring: Whether the exchange is an upload.
    ///   - hasLogin: Whether the request has a user name.
    static func remote(
        _ error: CurlError, file: RemoteFile, reply: FTPReply?, bodyBegun: Bool, isOpened: Bool, isStoring: Bool,
        hasLogin: Bool
    ) -> TransferError {
        let (host, path) = (file.host, file.path.text)
        let words = reply.map { ": it replied \($0.code) \($0.text)" } ?? ""
        // A 4yz reply is a transient failure (RFC 959, section 4.2.1).
        let isTransient = reply.map { (400...499).contains($0.code) } ?? false
        // Several servers send the reply for wrong passwords when they have no room (ProFTPD's MaxClients).
        let isFull = reply.map { $0.code == 530 && tellsOfFullServer($0.text) } ?? false
        // The numbers are the error codes of libcurl's public interface (libcurl-errors).
        switch error.code {
        case _ where error.isFlood:
            return TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host): \(error.message)")
        // libcurl reports a time-out for a 421 reply, because servers also send it when they time out.
        case .loginDenied where isTransient || isFull, .ftpWeirdPassReply where isTransient,
            .operationTimedout where reply?.code == 421 && !bodyBegun:
            return TransferError(.cannotConnect, "\(host) accepts no logins at present\(words)")
        case .loginDenied where !hasLogin, .ftpWeirdPassReply where !hasLogin:
            return TransferError(.loginRefused, "\(host) requires a user name and password\(words)")
        case .loginDenied, .ftpWeirdPassReply:
            return TransferError(
                .loginRefused,
                "\(host) refuses the login\(words): the user name, password or key is wrong"
            )
        case .remoteAccessDenied: return TransferError(.permissionDenied, "\(host) refuses access to \(path)\(words)")
        case .remoteFileNotFound:
            return TransferError(.notFound, "\(host) has no file \(path), or does not show it to this user\(words)")
        case .uploadFailed where reply?.code == 552:
            return TransferError(.remoteFull, "\(host) has no room for \(path)\(words)")
        case .ftpCouldntRetrFile, .uploadFailed, .quoteError, .ftpCouldntUseRest, .ftpCouldntSetType:
            let what = error.code == .uploadFailed ? "take" : "give"
            return isTransient
                ? TransferError(bodyBegun ? .truncated : .cannotConnect, "\(host) failed for \(path)\(words)")
                : TransferError(.permissionDenied, "\(host) does not \(what) \(path)\(words)")
        // The reply concerns the whole transfer. A 5yz reply is a permanent failure (RFC 959, section 4.2.1).
        case .partialFile where isStoring && reply?.code == 552:
            return TransferError(.remoteFull, "\(host) has no room for \(path)\(words)")
        case .partialFile where isStoring && reply.map { (500...599).contains($0.code) } ?? false:
            return TransferError(.permissionDenied, "\(host) does not store \(path)\(words)")
        case .partialFile where reply.map { $0.code >= 400 } ?? false:
            return TransferError(.truncated, "\(host) did not confirm the transfer of \(path)\(words)")
        case .ftpPortFailed, .ftpAcceptFailed, .ftpWeirdPasvReply, .ftpWeird227Format, .ftpCantGetHost:
            return TransferError(
                .cannotConnect, "no data connection to \(host) in passive mode\(words): is there a firewall in between?"
            )
        case .badDownloadResume:
            return TransferError(.remoteChanged, "the file on the server is shorter than the part already downloaded")
        case .filesizeExceeded: return TransferError(.tooLarge, "the file is larger than allowed")
        // A server without free capacity replies in clear text before TLS begins, which OpenSSL reports as an invalid
        // TLS record.
        case .sslConnectError where file.scheme == .ftps && error.message.firstRange(of: "wrong version number") != nil:
            return TransferError(
                .cannotConnect,
                "\(host) sent clear text instead of TLS: it accepts no logins at present, or expects ftp:// "
                    + "there")
        case .useSSLFailed:
            return TransferError(.tls, "\(host) offers no TLS\(words), but TLS is required")
        case .remoteDiskFull: return TransferError(.remoteFull, "\(host) has no room for \(path)\(words)")
        case .remoteFileExists:
            return TransferError(.nameConflict, "\(host) already has a file \(path) and keeps it\(words)")
        case .weirdServerReply, .ftpPretFailed, .chunkFailed:
            return TransferError(
                bodyBegun ? .truncated : .cannotConnect, "\(host) does not support \(file.scheme.rawValue)\(words)")
        case .failedInit where file.scheme == .sftp:
            return TransferError(
                .cannotConnect,
                "\(host) and this machine's libssh2 cannot establish an SSH session: the server is too busy, or offers "
                    + "only algorithms that libssh2 does not support, such as only RSA host keys")
        case .ssh where bodyBegun:
            return TransferError(.truncated, "the SSH connection to \(host) was lost, or reading \(path) failed")
        case .ssh where isOpened:
            return TransferError(
                .truncated, "the SSH connection to \(host) was lost before \(path) was sent, or reading it failed")
        case .ssh where isStoring && error.message.firstRange(of: "Upload failed: Operation failed") != nil:
            return TransferError(
                .permissionDenied, "\(host) does not accept \(path): is it a directory, or is its directory read-only?")
        case .ssh where error.message.firstRange(of: "Could not open") != nil:
            return TransferError(.permissionDenied, "\(host) does not send \(path): is it a directory?")
        case .ssh:
            return TransferError(
                .cannotConnect, "\(host) failed for \(path): no such directory, no permission, or no SFTP")
        case .operationTimedout where bodyBegun:
            return TransferError(.stalled, "\(host) did not answer in time\(words)")
        case .operationTimedout: return TransferError(.timedOut, "\(host) did not answer in time\(words)")
        case .unsupportedProtocol, .notBuiltIn:
            return TransferError(.protocolNotAllowed, "this machine's libcurl does not support \(file.scheme.rawValue)")
        default: return .exchange(error, bodyBegun: bodyBegun, host: host)
        }
    }
    private static func tellsOfFullServer(_ text: String) -> Bool {
        let text = text.lowercased()
        return ["too many", "maximum number", "maximum login", "already connected", "try again later"].contains {
            text.contains($0)
        }
    }
}

import Curl

/// A file on a file server, from the components of an FTP, FTPS or SFTP URL.
struct RemoteFile: Sendable {
    let scheme: RemoteScheme
    /// The host in lower case, IPv6 in brackets.
    let host: String
    let port: Int
    let path: RemotePath
    /// The user name as in the URL.
    let user: String?
    let password: String?

    /// Parses a URL.
    ///
    /// - Throws: An error if the URL is invalid or does not name a file.
    init(_ text: String) throws(TransferError) {
        let url: CurlURL
        let user: (user: String?, password: String?)
        do throws(CurlError) {
            url = try CurlURL(text)
            user = try url.userInformation()
        } catch {
            throw .unreadable(text)
        }
        guard let scheme = RemoteScheme(rawValue: url.scheme) else {
            throw TransferError(.protocolNotAllowed, "\(url.scheme) is not a protocol of file servers")
        }
        guard !url.text.utf8.contains(UInt8(ascii: "?")) else {
            throw TransferError(
                .invalidRequest, "\(url.scheme) has no queries: write %3F for a question mark in a file's name")
        }
        self.scheme = scheme
        host = url.host
        port = url.port
        path = try RemotePath(url.path, scheme: scheme)
        (self.user, password) = user
    }

    /// Returns a URL for libcurl, without user and password, which are set as separate options.
    ///
    /// - Parameter path: The path of a file on the server; `nil` for the root, if only commands are sent.
    func url(of path: RemotePath?) -> String { "\(scheme.rawValue)://\(host):\(port)\(path?.urlPath ?? "/")" }

    /// The host as in `known_hosts` and certificates: IPv6 without brackets.
    var plainHost: String { host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host }
}

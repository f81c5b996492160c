import Curl

/// A file on a file server: what a URL of FTP, FTPS or SFTP says.
struct RemoteFile: Sendable {
    let scheme: RemoteScheme
    /// Lower case, IPv6 in brackets.
    let host: String
    let port: Int
    let path: RemotePath
    /// As they stand in the URL.
    let user: String?
    let password: String?

    /// - Throws: where the URL cannot be read, or names no file.
    init(_ text: String) throws(TransferError) {
        let url: CurlURL
        let user: (user: String?, password: String?)
        do throws(CurlError) {
            url = try CurlURL(text)
            user = try url.userInformation()
        } catch {
            throw TransferError(.invalidRequest, "the URL cannot be read")
        }
        guard let scheme = RemoteScheme(rawValue: url.scheme) else {
            throw TransferError(.protocolNotAllowed, "\(url.scheme) is no protocol of file servers")
        }
        guard !url.text.utf8.contains(UInt8(ascii: "?")) else {
            throw TransferError(
                .invalidRequest, "\(url.scheme) knows no queries: write %3F for a question mark in a file's name")
        }
        self.scheme = scheme
        host = url.host
        port = url.port
        path = try RemotePath(url.path, scheme: scheme)
        (self.user, password) = user
    }

    /// For libcurl: without user and password, which go their own way.
    ///
    /// - Parameter path: another file of the server; `nil`: none, for commands alone.
    func url(of path: RemotePath?) -> String { "\(scheme.rawValue)://\(host):\(port)\(path?.urlPath ?? "/")" }

    /// As `known_hosts` and certificates have it.
    var plainHost: String { host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host }
}

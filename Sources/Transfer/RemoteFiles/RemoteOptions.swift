import CLinux
import Curl
import Glibc

/// A translation of a request for a file on a file server into the options of an easy handle.
struct RemoteOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    let file: RemoteFile
    let route: RouteLookup
    /// A known_hosts file that makes libssh2 request one type of host key.
    let wish: MemoryFile?
    /// The file of a private key that is kept in memory.
    let key: MemoryFile?
    let receiveBuffer: Int

    func apply(_ step: RemoteStep, to exchange: Exchange) throws(CurlError) {
        try exchange.easy.set(.noSignal, to: true)
        try exchange.easy.set(.url, to: file.url(of: step.path))
        try exchange.easy.set(.protocols, to: file.scheme.rawValue)
        try exchange.easy.set(.followLocation, to: false)
        try exchange.easy.set(.netrc, to: false)
        try exchange.easy.set(.tcpKeepAlive, to: true)
        try exchange.easy.set(.bufferSize, to: receiveBuffer)
        // libcurl reuses a connection without checking which credentials it was logged in with and why its host key was
        // trusted (CVE-2023-27535, CVE-2023-27538). Each exchange therefore has its own connection.
        try exchange.easy.set(.freshConnection, to: true)
        try exchange.easy.set(.forbidReuse, to: true)
        try setTimes(on: exchange, step)
        try ProxyOptions(configuration: configuration, request: request, host: file.host, port: file.port)
            .apply(to: exchange.easy)
        // A proxy that handled FTP itself would respond in HTTP.
        try exchange.easy.set(.httpProxyTunnel, to: true)
        try route.apply(to: &exchange.easy)
        if file.scheme.isFTP { try setFTP(step, on: exchange) } else { try setSSH(on: exchange) }
        try set(step, on: exchange)
    }

    /// The maximum time in milliseconds for a server's last reply to a download. Other exchanges on the loop wait
    /// meanwhile.
    private static let longestQuitWait: Int64 = 10_000

    private func setTimes(on exchange: Exchange, _ step: RemoteStep) throws(CurlError) {
        try exchange.easy.set(.connectTimeout, to: Int(configuration.connectTimeout))
        exchange.activity.stallTimeout = configuration.stallTimeout
        // In seconds, clamped to libcurl's maximum. It exceeds the session's own stall timeout, whose error is more
        // specific.
        let stall = configuration.stallTimeout / 1000 + 2
        try exchange.easy.set(
            .responseTimeout, to: configuration.stallTimeout > 0 ? Int(min(stall, 2_000_000)) : 2_000_000)
        // The maximum, 49 days: without a timeout, libcurl's waiting calls do not sleep.
        try exchange.easy.set(.timeout, to: Int(UInt32.max))
        if file.scheme.isFTP { try exchange.limitsQuitWait() }
        let stallTimeout = configuration.stallTimeout
        switch step.work {
        case .fetch, .look:
            try exchange.watches(stallTimeout > 0 ? min(stallTimeout, Self.longestQuitWait) : Self.longestQuitWait)
        // A server may need long to store what it received.
        case .store, .command: try exchange.watches(stallTimeout)
        }
    }

    private func set(_ step: RemoteStep, on exchange: Exchange) throws(CurlError) {
        switch step.work {
        case .fetch(let offset):
            try exchange.easy.set(.fileTime, to: true)
            if file.scheme.isFTP {
                // Otherwise libcurl would stop at the size that the server reported, and a longer file would seem
                // complete.
                try exchange.easy.set(.ignoresSize, to: true)
            } else if offset > 0 {
                try exchange.easy.set(.resumeFrom, to: offset)
            }
        case .look:
            try exchange.easy.set(.fileTime, to: true)
            try exchange.easy.set(.noBody, to: true)
        case .store(let length, let offset):
            try exchange.easy.set(.upload, to: true)
            if offset > 0 { try exchange.easy.set(.resumeFrom, to: offset) }
            try exchange.easy.set(.uploadSize, to: length ?? -1)
            try exchange.easy.set(.uploadBufferSize, to: 256 * 1024)
        case .command: try exchange.easy.set(.noBody, to: true)
        }
        var before = HeaderList()
        var between = HeaderList()
        var after = HeaderList()
        for line in step.commandsBefore { try before.append(bytes: line) }
        for line in step.commandsBetween { try between.append(bytes: line) }
        for line in step.commandsAfter { try after.append(bytes: line) }
        try exchange.easy.setCommands(before: before, between: between, after: after)
    }

    // MARK: FTP

    /// The trust policy from the session's configuration; delegates are not asked.
    private var trust: TrustOptions {
        var trust = TrustOptions(
            for: file.host, port: file.port, request, configuration.trustPolicies, configuration)
        trust.isLeftToLibrary = true
        return trust
    }

    private var usesTLS: Bool { file.scheme == .ftps || (file.scheme == .ftp && request.transportSecurity != .none) }

    /// Refuses trust policies that need the certificates themselves.
    ///
    /// - Throws: `tls`, because libcurl provides the certificates before a transfer, and FTP starts a transfer after
    ///   the login: user and password would be sent before the server was checked.
    func checkTrust() throws(TransferError) {
        guard usesTLS, trust.judges else { return }
        throw TransferError(
            .tls,
            "the trust policy for \(file.host) evaluates certificates itself, too late for FTP: pin its key"
        )
    }

    private func setFTP(_ step: RemoteStep, on exchange: Exchange) throws(CurlError) {
        // A reply that follows that to the login would be taken for the reply to the next command. SSH needs no such
        // check: its replies carry the numbers of their requests.
        exchange.refusesUnaskedInput()
        // Use passive mode only, and connect to the server's own address whatever address it reports.
        try exchange.easy.set(.skipPassiveAddress, to: true)
        try exchange.easy.set(.fileMethod, to: 2)  // CURLFTPMETHOD_NOCWD
        let security: Int =
            switch (file.scheme, request.transportSecurity) {
            case (.ftps, _), (_, .required): 3  // CURLUSESSL_ALL
            case (_, .try): 1  // CURLUSESSL_TRY
            case (_, .none): 0
            }
        try exchange.easy.set(.transportSecurity, to: security)
        if security > 0 {
            let security = SecurityOptions(
                configuration: configuration, request: request, host: file.host, port: file.port, trust: trust)
            try security.apply(to: exchange.easy)
            // In TLS 1.3, a server sends session tickets over a data connection on which libcurl 7.88 only writes.
            // libcurl closes the connection without reading them, the kernel responds with RST, and data that the
            // server had not read yet is lost. A retry would fail in the same way.
            if case .store = step.work { try exchange.easy.set(.tlsVersion, to: 6 | 6 << 16) }  // TLS 1.2 only
        }
        if let login = login, case .password = login.kind {
            try exchange.easy.set(.user, to: login.user)
            try exchange.easy.set(.password, to: login.password)
        }
    }

    // MARK: SSH

    private func setSSH(on exchange: Exchange) throws(CurlError) {
        try exchange.evaluatesHostKey()
        if let wish { try exchange.easy.set(.knownHosts, to: wish.path) }
        guard let login else { return }
        try exchange.easy.set(.user, to: login.user)
        switch login.kind {
        case .privateKey(let path, let passphrase):
            try exchange.easy.set(.sshAuthentication, to: 1)  // CURLSSH_AUTH_PUBLICKEY
            try exchange.easy.set(.privateKeyFile, to: path)
            try exchange.easy.set(.keyPassphrase, to: passphrase)
        case .privateKeyText(_, let passphrase):
            guard let key else { return }
            try exchange.easy.set(.sshAuthentication, to: 1)  // CURLSSH_AUTH_PUBLICKEY
            try exchange.easy.set(.privateKeyFile, to: key.path)
            try exchange.easy.set(.keyPassphrase, to: passphrase)
        case .password, .bearer:
            // CURLSSH_AUTH_PASSWORD and CURLSSH_AUTH_KEYBOARD: many servers request the password as one of several
            // possible prompts (RFC 4256).
            try exchange.easy.set(.sshAuthentication, to: 2 | 8)
            try exchange.easy.set(.password, to: login.password)
        }
    }

    /// The request's credential, or else that in the URL.
    private var login: Credential? {
        request.credential ?? file.user.map { Credential(user: $0, password: file.password ?? "") }
    }

    /// Validates the credential.
    ///
    /// - Throws: `loginRefused` if the credential is missing, of the wrong kind or malformed, or an error if the key
    ///   file cannot be read.
    func checkLogin() throws(TransferError) {
        let control: (UInt8) -> Bool = { $0 < 0x20 || $0 == 0x7F }
        switch (login, login?.kind) {
        case (nil, _) where !file.scheme.isFTP, (_, .bearer):
            throw TransferError(
                .loginRefused,
                "\(file.scheme.rawValue) requires a user name and password\(file.scheme.isFTP ? "" : ", or a key")")
        case (_, .privateKey) where file.scheme.isFTP, (_, .privateKeyText) where file.scheme.isFTP:
            throw TransferError(.loginRefused, "\(file.scheme.rawValue) requires a password, not an SSH key")
        case (let login?, _)
        where login.user.utf8.contains(where: control) || login.password.utf8.contains(where: control):
            // The remainder would be sent as a separate command.
            throw TransferError(.loginRefused, "the user's name or password contains a control character")
        case (_, .privateKey(let path, _)):
            // Otherwise libssh2 would only report that the server refuses.
            guard access(path, R_OK) == 0 else { throw .file(errno, doing: "read the key \(path)") }
        default: break
        }
    }
}

/// A small file that exists in memory only, for libraries that accept only paths.
final class MemoryFile {
    private let descriptor: FileDescriptorOwner

    init(_ bytes: [UInt8]) throws(TransferError) {
        let raw = linux_memory_file("dld")
        guard raw >= 0 else { throw .file(errno, doing: "create a file in memory") }
        descriptor = FileDescriptorOwner(raw)
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { space.deallocate() }
        space.copyBytes(from: bytes)
        try descriptor.write(UnsafeRawBufferPointer(space), at: 0)
    }

    /// The path of the file, valid during the lifetime of this object.
    var path: String { "/proc/self/fd/\(descriptor.raw)" }
}

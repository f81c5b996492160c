import Curl
import Glibc

extension Exchange {
    /// Whether a proxy offered the Basic scheme for a tunnel and closed the connection without an announcement, so that
    /// libcurl could not send the password.
    func indicatesImpatientProxy(_ error: CurlError) -> Bool {
        // libcurl's words for a password that was refused: those of 7.88, and those of 8.
        let tellsOfRefusal = ["from proxy after CONNECT", "tunnel failed"].contains {
            error.message.firstRange(of: $0) != nil
        }
        return error.code == .recvError && easy.proxyStatus() == 407 && easy.isOfferedBasicByProxy() && !tellsOfRefusal
    }
}

extension TransferError {
    /// Returns the error of a new connection on which the server spoke before the request was sent.
    static func unaskedInput(from host: String) -> TransferError {
        TransferError(.cannotConnect, "\(host) sent bytes on a new connection before it was asked")
    }

    /// Creates the error for a failed connection, with the name of the host that did not accept it.
    ///
    /// - Parameters:
    ///   - exchange: the failed exchange.
    ///   - peer: the host that libcurl connects to: the server, or the proxy in front of it.
    ///   - proxy: the proxy, to which libcurl sent the user name and password of its URL if it asked for them.
    /// - Returns: `nil` if ``exchange(_:bodyBegun:host:)`` is as specific.
    static func connecting(
        _ error: CurlError, _ exchange: Exchange, to peer: (host: String, port: Int),
        for server: (host: String, port: Int), by proxy: ProxyOptions
    ) -> TransferError? {
        let isProxy = peer != server
        let (systemError, proxyStatus) = (exchange.easy.systemError(), exchange.easy.proxyStatus())
        let name = isProxy ? "the proxy \(peer.host):\(peer.port)" : peer.host
        let port = isProxy ? name : "port \(peer.port) of \(peer.host)"
        // The numbers are libcurl's error codes (libcurl-errors).
        return switch error.code {
        case .couldntConnect where systemError == ENETUNREACH || systemError == EHOSTUNREACH:
            TransferError(.unreachable, "no route to \(name) from this machine", systemError: systemError)
        case .couldntConnect where systemError == ECONNREFUSED:
            TransferError(
                .cannotConnect, "\(port) refuses the connection: is \(isProxy ? "it" : "the server") up?",
                systemError: systemError)
        case .couldntConnect where lacksDescriptors:
            TransferError(
                .cannotConnect,
                "cannot connect to \(name): every file descriptor that this process may open is in use "
                    + "(see \"ulimit -n\", or limit the connections)",
                systemError: EMFILE)
        case .couldntConnect where isProxy: TransferError(.cannotConnect, "cannot connect to \(name): is it up?")
        case .couldntConnect:
            TransferError(.cannotConnect, "cannot connect to \(peer.host):\(peer.port): is the server up?")
        case .operationTimedout where isProxy:
            TransferError(.timedOut, "no connection to \(server.host) by \(name) within the connect timeout")
        case .sslConnectError where systemError != 0 || indicatesCut(error.message):
            TransferError(.cannotConnect, "the connection to \(name) was lost during the TLS handshake")
        // CURLE_RECV_ERROR, which also occurs if a proxy refuses a tunnel.
        case .recvError where proxyStatus >= 300:
            .refusedTunnel(proxyStatus, to: server.host, by: ProxyRefusal(proxy, sentLogin: proxy.hasLogin))
        case .proxy where exchange.easy.isRefusedByProxy() && proxy.hasLogin:
            TransferError(
                .loginRefused, "\(name) rejected the user name and password",
                underlying: ProxyRefusal(proxy, sentLogin: true))
        case .proxy where exchange.easy.isRefusedByProxy():
            TransferError(
                .loginRefused, "\(name) requires a user name and password, which its URL can contain",
                underlying: ProxyRefusal(proxy))
        case .proxy: TransferError(.cannotConnect, "\(name) cannot connect to \(server.host): \(error.message)")
        default: nil
        }
    }

    /// Returns the error, as one of the proxy if no connection to it was made.
    ///
    /// - Parameters:
    ///   - peer: the host that libcurl connects to: the server, or the proxy in front of it.
    ///   - proxy: the URL of the proxy; `nil` if there is none.
    func blamed(
        on proxy: String?, _ exchange: Exchange, peer: (host: String, port: Int), server: (host: String, port: Int)
    ) -> TransferError {
        // A proxy that accepts a connection and then reports a failure, or nothing, tells of the server. libcurl 7.88
        // counts a connection as soon as TCP stands; CURLINFO_CONNECT_TIME is 0 until the tunnel stands too.
        guard let proxy, peer != server, systemError != EMFILE, exchange.easy.timing().connections == 0,
            exchange.easy.peerAddress() == nil,
            code == .cannotConnect || code == .timedOut || code == .unreachable
        else { return self }
        return ofProxy(RouteLookup.origin(ofProxy: proxy))
    }

    /// Returns the error for a proxy that closed its connection in the place of waiting for the login it asked for.
    static func impatientProxy(_ origin: String) -> TransferError {
        TransferError(
            .cannotConnect,
            "the proxy \(origin) asked for the user name and password and closed the connection; the next attempt sends "
                + "them at once")
    }

    /// Creates the error for a proxy that refuses a connection to a server.
    private static func refusedTunnel(_ status: Int, to host: String, by refusal: ProxyRefusal?) -> TransferError {
        let name = refusal.map { "the proxy \($0.proxy)" } ?? "the proxy"
        let words =
            switch status {
            case 407: refusal?.words(for: status) ?? ResponseEvaluator.words(for: status)
            case 403: "\(name) refuses a connection to \(host) (403)"
            default: "\(name) responded with status \(status) to the request for a connection to \(host)"
            }
        return TransferError(.httpStatus, words, httpStatus: status, underlying: refusal)
    }

    /// Whether the process can open no further file. libcurl does not report the reason if it cannot create a socket.
    private static var lacksDescriptors: Bool {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == EMFILE || errno == ENFILE }
        _ = close(descriptor)  // nothing was written to it
        return false
    }

    /// Creates the error for a peer that responds to a TLS handshake with data of another protocol.
    ///
    /// - Parameters:
    ///   - exchange: the failed exchange.
    ///   - peer: the host that libcurl connects to: the server, or the proxy in front of it.
    /// - Returns: `nil` if TLS failed for another reason.
    static func plainHTTPResponse(
        _ error: CurlError, _ exchange: Exchange, to peer: (host: String, port: Int),
        for server: (host: String, port: Int)
    ) -> TransferError? {
        // CURLE_SSL_CONNECT_ERROR, and OpenSSL's errors for bytes that are not a TLS record.
        let indicatesPlainBytes = ["wrong version number", "packet length too long"].contains {
            error.message.firstRange(of: $0) != nil
        }
        guard error.code == .sslConnectError, indicatesPlainBytes else { return nil }
        // Through a tunnel, the server responds.
        let isProxy = peer != server && exchange.easy.proxyStatus() == 0
        let place = isProxy ? "\(peer.host):\(peer.port)" : "\(server.host):\(server.port)"
        return TransferError(
            .tls, "the \(isProxy ? "proxy" : "server") at \(place) does not speak TLS; is it http://\(place)?")
    }

    /// Returns whether OpenSSL's message states that a handshake failed because the connection ended.
    private static func indicatesCut(_ words: String) -> Bool {
        ["unexpected eof", "SSL_ERROR_SYSCALL", "Connection reset"].contains { words.firstRange(of: $0) != nil }
    }
}

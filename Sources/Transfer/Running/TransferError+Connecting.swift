import Curl
import Glibc

extension TransferError {
    /// Why no connection came about, with the name of who did not make one.
    ///
    /// - Parameters:
    ///   - systemError: of libcurl's last try.
    ///   - peer: whom libcurl connects to: the server, or the proxy before it.
    /// - Returns: `nil` where ``exchange(_:bodyBegun:host:)`` says as much.
    static func connecting(
        _ error: CurlError, systemError: Int32, to peer: (host: String, port: Int),
        for server: (host: String, port: Int)
    ) -> TransferError? {
        let isProxy = peer != server
        let name = isProxy ? "the proxy \(peer.host):\(peer.port)" : peer.host
        // The numbers are those of libcurl's public interface (libcurl-errors).
        return switch error.code {
        case 7 where systemError == ENETUNREACH || systemError == EHOSTUNREACH:
            TransferError(.unreachable, "no way to \(name) from this machine")
        case 7 where isProxy: TransferError(.cannotConnect, "cannot connect to \(name): is it up?")
        case 28 where isProxy:
            TransferError(.timedOut, "no connection to \(server.host) by \(name) within the connect timeout")
        case 97: TransferError(.cannotConnect, "\(name) makes no connection to \(server.host): \(error.message)")
        default: nil
        }
    }
}

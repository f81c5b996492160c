import ControlProtocol
import Dispatch
import Glibc

/// A connection for calls, used by one thread of its own. It is opened when it is needed, and anew after a loss.
///
/// `@unchecked`: only the serial queue uses the client.
final class CallQueue: @unchecked Sendable {
    private let queue = DispatchQueue(label: "dld-client-calls")
    private let connect: @Sendable () throws(ClientError) -> ControlClient
    private var client: ControlClient?

    /// The time in seconds for which a call that may be repeated waits for a daemon that restarts.
    private static let patience: Double = 30
    /// The maximum time in seconds for a call.
    private static let longestCall: Double = 120
    /// The time in microseconds between two attempts.
    private static let pause: UInt32 = 100_000

    init(connect: @escaping @Sendable () throws(ClientError) -> ControlClient) { self.connect = connect }

    /// Runs `body` with a connection.
    ///
    /// - Parameter isRepeatable: whether `body` may run again after the connection was lost during it.
    func run<Value: Sendable>(
        isRepeatable: Bool = true,
        _ body: @escaping @Sendable (ControlClient) throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        let deadline = Deadline.after(seconds: isRepeatable ? Self.patience : 0)
        let result: Result<Value, ClientError> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.result(until: deadline, body)) }
        }
        return try result.get()
    }

    private func result<Value>(
        until deadline: Deadline, _ body: (ControlClient) throws(ClientError) -> Value
    ) -> Result<Value, ClientError> {
        while true {
            do throws(ClientError) {
                let client = try connected()
                client.deadline = .after(seconds: Self.longestCall)
                return .success(try body(client))
            } catch {
                // The response of a call that took too long would be taken for that of the next one.
                if error == .timedOut { client = nil }
                guard Self.isLoss(error) else { return .failure(error) }
                client = nil
                if deadline.isOver { return .failure(error) }
                _ = usleep(Self.pause)  // a signal that cuts it short only causes an earlier attempt
            }
        }
    }

    private func connected() throws(ClientError) -> ControlClient {
        if let client { return client }
        let fresh = try connect()
        client = fresh
        return fresh
    }

    /// Whether a restart of the daemon may be the cause.
    static func isLoss(_ error: ClientError) -> Bool {
        switch error {
        case .noDaemon, .connectionLost: true
        case .rpc(let answer): answer.code == RPCError.Number.unavailable && answer.data?.code != .cannotStart
        default: false
        }
    }
}

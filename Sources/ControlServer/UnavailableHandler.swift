package import ControlProtocol
import TaskModel
package import TaskQueue

/// A handler that responds to every command with the same error, for a daemon that cannot start but still accepts
/// connections.
package struct UnavailableHandler: ControlHandler {
    private let error: @Sendable () -> RPCError

    /// - Parameter error: called once for each command.
    package init(error: @escaping @Sendable () -> RPCError) {
        self.error = error
    }

    package func handle(_ command: Command, from peer: Peer) async -> Result<any Encodable & Sendable, RPCError> {
        .failure(error())
    }

    package func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorQuota.Reservation, RPCError> {
        .failure(error())
    }

    package func events(
        _ parameters: EventsSubscribeParameters, for peer: Peer
    ) async -> Result<EventSubscription, RPCError> {
        .failure(error())
    }
}

extension RPCError {
    /// Returns the error for a daemon that cannot start.
    ///
    /// - Parameter message: the reason and a remedy.
    package static func cannotStart(_ message: String) -> RPCError {
        RPCError(code: Number.unavailable, message: message, data: Detail(code: .cannotStart))
    }
}

import ControlProtocol
import TaskModel
import TaskQueue

/// Answers every command with the same error: for a daemon that cannot start and is asked all the same.
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
    ) -> Result<DescriptorShares.Reservation, RPCError> {
        .failure(error())
    }

    package func events(
        _ parameters: EventsSubscribeParameters, for peer: Peer
    ) async -> Result<EventSubscription, RPCError> {
        .failure(error())
    }
}

extension RPCError {
    /// The daemon cannot start.
    ///
    /// - Parameter message: why, and what helps.
    package static func cannotStart(_ message: String) -> RPCError {
        RPCError(code: Number.unavailable, message: message, data: Detail(code: .cannotStart))
    }
}

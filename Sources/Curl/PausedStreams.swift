import CCurl

/// The paused streams of a loop's HTTP/2 connections, and a bound on the bytes that libcurl keeps for them.
///
/// A connection whose streams are all paused is not read. While another stream is read, libcurl 7.88 keeps what arrives
/// for a paused one, up to its window of 32 MiB. With more than ``mostKept`` bytes of all its streams, a connection is
/// not read until they have taken some. A stream that is paused for longer than ``patience`` beside others leaves the
/// connection if its handler can request the rest over another one. If it cannot, its bytes do not count any more, since
/// the other streams would wait for it.
struct PausedStreams {
    /// The number of bytes kept for the paused streams of a connection from which on it is not read.
    static let mostKept: Int64 = 8 << 20
    /// The number of bytes at which it is read again.
    static let fewKept = mostKept / 2
    /// The time after which a pause counts as long, in milliseconds.
    static let patience: Int64 = 2_000

    struct Stream {
        let connection: SocketIdentity
        let pausedAt: MonotonicTime
        /// Whether the stream stays on its connection in spite of a long pause.
        var stays = false
    }

    /// The paused streams by the numbers of their exchanges.
    private(set) var streams: [Int: Stream] = [:]
    /// The connections that are not read.
    private(set) var unread: [SocketIdentity] = []

    var isEmpty: Bool { streams.isEmpty && unread.isEmpty }

    /// - Parameter stays: whether the stream cannot leave its connection.
    mutating func pause(_ id: Int, on connection: SocketIdentity, at now: MonotonicTime, stays: Bool = false) {
        streams[id] = Stream(connection: connection, pausedAt: now, stays: stays)
    }

    mutating func end(_ id: Int) { streams[id] = nil }

    mutating func stay(_ id: Int) { streams[id]?.stays = true }

    /// Returns the streams whose pause is long, each with its connection.
    func long(at now: MonotonicTime) -> [(id: Int, connection: SocketIdentity)] {
        streams.compactMap { id, stream in
            !stream.stays && now.milliseconds(since: stream.pausedAt) >= Self.patience
                ? (id, stream.connection) : nil
        }
    }

    /// Decides which connections are read.
    ///
    /// - Parameter kept: returns the number of bytes that libcurl keeps for an exchange.
    /// - Returns: the connections that are read again. ``unread`` has those that are not.
    mutating func weigh(_ kept: (Int) -> Int64) -> [SocketIdentity] {
        var sums: [(connection: SocketIdentity, bytes: Int64)] = []
        for (id, stream) in streams where !stream.stays {
            if let index = sums.firstIndex(where: { $0.connection == stream.connection }) {
                sums[index].bytes += kept(id)
            } else {
                sums.append((stream.connection, kept(id)))
            }
        }
        let resume = unread.filter { connection in
            sums.first { $0.connection == connection }.map { $0.bytes <= Self.fewKept } ?? true
        }
        let stop = sums.filter { $0.bytes > Self.mostKept && !unread.contains($0.connection) }.map(\.connection)
        unread.removeAll { resume.contains($0) }
        unread += stop
        return resume
    }
}

extension LoopCore {
    /// Whether other exchanges use the connection of `exchange`.
    package func sharesConnection(_ exchange: Exchange) -> Bool {
        guard let connection = exchange.connection else { return false }
        return exchanges.values.contains { $0 !== exchange && $0.connection == connection }
    }

    /// Bounds what libcurl keeps for paused streams. Called at each turn.
    func weighPausedStreams() {
        guard !pausedStreams.isEmpty else { return }
        let resumed = pausedStreams.weigh { exchanges[$0]?.keptBytes ?? 0 }
        // At each turn, since libcurl may have stopped watching the socket and begun again.
        for connection in pausedStreams.unread { mute(connection.descriptor) }
        for connection in resumed where connection.isOpen { unmute(connection.descriptor) }
    }

    /// Lets streams whose pause is long leave the connections on which other exchanges wait for bytes.
    func leaveHeldConnections() {
        for (id, connection) in pausedStreams.long(at: now) {
            let isInTheWay = exchanges.values.contains { $0.connection == connection && $0.pausedDirections == 0 }
            guard isInTheWay, let exchange = exchanges[id] else { continue }
            guard !exchange.handler.leavesSharedConnection(exchange) else { continue }
            exchange.staysOnConnection = true
            pausedStreams.stay(id)
        }
    }
}

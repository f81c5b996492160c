import Curl

extension DownloadRun {
    func snapshot() -> DownloadSnapshot {
        let now = MonotonicTime.now().milliseconds
        return DownloadSnapshot(
            connections: connections.compactMap { connection in
                machine[connection.number].map { describe(connection, $0, now: now) }
            }, ranges: file.written, exchanges: connections.compactMap(\.transaction.exchangeUnderWay))
    }

    private func describe(
        _ connection: DownloadConnection, _ segment: SegmentConnection, now: Int64
    ) -> DownloadSnapshot.Connection {
        let next = segment.position(connection.writer.position)
        let wasSent = segment.isUnderWay || segment.isReceiving
        let first = wasSent ? segment.request.from ?? 0 : segment.start
        let end =
            machine.table?.claims[connection.number]?.end ?? segment.end ?? segment.reach ?? file.version.total
        return DownloadSnapshot.Connection(
            address: connection.transaction.launcher.peerAddress, first: min(first, next), next: next,
            end: end.map { max(next, $0) }, rate: segment.timing.rate(at: now))
    }
}

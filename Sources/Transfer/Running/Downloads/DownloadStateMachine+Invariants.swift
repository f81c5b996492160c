/// The invariants of a download over several connections.
///
/// 1. *The end of every exchange is seen once.* A connection sends a request only after the end of the one before.
/// 2. *Every pause ends.* Each reason for which an exchange is paused has one owner that ends it: a timer (rate), the
///    caller (suspended), a checkpoint that is due (checkpoint), or blocks on their way to the disk (disk).
/// 3. *Every written byte is counted,* once.
/// 4. *Bytes of two versions never meet.* Several connections request from one source, or a digest shows whether their
///    bytes belong together.
/// 5. *The number of connections stays within its limit.*
/// 6. *From every state some event leads to an end.* An exchange is under way, a timer or a slow disk will call back,
///    or the download has ended.
/// 7. *Nothing is requested where nothing is missing.* The end of an exchange, and every request for a
///    new range, looks first whether bytes are missing.
/// 8. *Complete bytes are never thrown away.* The part is dropped only where its bytes were seen to be wrong, or where
///    a response replaces an incomplete part.
extension DownloadStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    ///
    /// - Parameter isDiskBusy: whether blocks are on their way to the disk.
    func violation(_ facts: DownloadFacts, isDiskBusy: Bool) -> String? {
        if isEnded { return connections.isEmpty ? nil : "connections outlive their download" }
        if Set(connections.map(\.number)).count != connections.count { return "two connections have one number" }
        if facts.part.count != facts.part.written.count { return "bytes are written and not counted" }
        if connections.count > configuration.segments.most { return "more connections than are allowed" }
        if Set(connections.map(\.source)).count > 1, !facts.part.isJoinable, !facts.part.version.isJoined {
            return "sources meet that nothing ties together"
        }
        if let table, let claim = table.claims.first(where: { index(of: $0.key) == nil }) {
            return "connection \(claim.key) is closed and holds a claim"
        }
        let goesOn = connections.contains { $0.isUnderWay || $0.isResting } || isWaiting || isDiskBusy
        return goesOn ? nil : "no event will come"
    }
}

import Synchronization

/// The last answers to `daemon.status`. A client that asks a thousand times a second, or a thousand clients, cost the
/// queue no more than a few inquiries.
///
/// An answer is used again for ``lifetime`` unless the queue has changed since. So an answer shows every command that
/// was answered and every event that was sent before; only rates and byte counts may be as old as the lifetime.
final class StatusMemory: Sendable {
    /// The time for which an answer is used.
    static let lifetime: Duration = .milliseconds(200)
    /// The age from which on a new answer is obtained while the old one is still used.
    static let renewalAge: Duration = .milliseconds(50)
    /// The most users whose answers are kept.
    static let capacity = 64

    /// The callers who are given the same answer. An administrator may be one by a group of the process alone.
    private struct Audience: Hashable {
        let uid: UInt32
        let groups: [UInt32]

        init(_ peer: Peer) {
            uid = peer.uid
            groups = peer.groups
        }
    }

    private struct Entry {
        var answer: EncodedResult
        var change: UInt64
        var at: ContinuousClock.Instant
        var isBeingRenewed = false
    }

    private let entries = Mutex<[Audience: Entry]>([:])
    private let now: @Sendable () -> ContinuousClock.Instant

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.now = now }

    /// Returns the answer for a user; `nil` if there is none that may be used.
    ///
    /// - Parameter change: the queue's present ``ChangeCount``.
    /// - Returns: also whether the caller is to obtain a new answer (`isDueAnew`). No other caller is told so until then.
    func answer(for peer: Peer, change: UInt64) -> (answer: EncodedResult?, isDueAnew: Bool) {
        entries.withLock { entries in
            let audience = Audience(peer)
            guard let entry = entries[audience], entry.change == change else { return (nil, false) }
            let age = now() - entry.at
            guard age < Self.lifetime else { return (nil, false) }
            guard age >= Self.renewalAge, !entry.isBeingRenewed else { return (entry.answer, false) }
            entries[audience]?.isBeingRenewed = true
            return (entry.answer, true)
        }
    }

    /// Keeps an answer.
    ///
    /// - Parameter change: the queue's ``ChangeCount`` before the answer was begun.
    func keep(_ answer: EncodedResult, for peer: Peer, change: UInt64) {
        entries.withLock { entries in
            let audience = Audience(peer)
            if entries[audience] == nil, entries.count >= Self.capacity { entries = [:] }
            entries[audience] = Entry(answer: answer, change: change, at: now())
        }
    }

    func forget(_ peer: Peer) { entries.withLock { $0[Audience(peer)] = nil } }
}

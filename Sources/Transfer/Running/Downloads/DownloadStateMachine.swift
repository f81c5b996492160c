/// The state of a download over HTTP, and every decision about it: which connection requests which bytes of which
/// source, what a response means for the part, and what follows a failure.
///
/// A value without I/O, clock and closures. ``DownloadRun`` reports each event together with ``DownloadFacts``, and
/// performs the ``DownloadAction`` that comes back. The extensions group the events:
///
/// | Event | Extension |
/// |---|---|
/// | start, request about to be sent | `+Requests` |
/// | head received, body begun, bytes received | `+Responses` |
/// | exchange ended | `+Endings` |
/// | bytes flushed, disk failed, delay passed | `+Continuing` |
/// | tick, room for a connection granted | `+Scaling` |
struct DownloadStateMachine {
    /// The properties of the task that stay the same.
    struct Configuration {
        var segments: Segments = .one
        /// Whether the whole file once failed its digest.
        var hasMismatch = false
        /// Whether another source is preferred to waiting for a failing one.
        var leavesFailingSource = false
        /// Whether the request may be sent again, for a range or after a failure.
        var isRepeatable = true
        /// The statuses whose response is an empty file.
        var emptyStatuses: Set<Int> = []
        /// See ``TransferRequest/confirmationDelay``.
        var confirmationDelay: Int64 = 0
    }

    /// Observations about the servers.
    struct ServerTraits: Equatable {
        /// The server does not honour its own tag in `If-Range`.
        var ignoresCondition = false
        /// The server has said or shown that it sends ranges.
        var sendsRanges = false
        /// The server refused one of several connections.
        var refusedConnection = false
        /// The server was requested from once more after it may have taken the last connection for one of several.
        var wasAskedLater = false
    }

    /// Failures so far, and what they allow.
    struct Failures {
        /// The reason why the first source could not be used.
        var first: TransferError?
        /// A source that was left because it has another version than the part, and the evidence.
        var changed: (source: Int, reason: String)?
        /// The number of times that the whole was requested anew.
        var restarts = 0
        /// The number of occasions in a row on which connections brought nothing.
        var losses = 0
        /// The monotonic time, in milliseconds, before which no connection is added.
        var addsFrom: Int64 = 0
    }

    /// The throughput of the download's connections.
    struct Rates {
        /// Seconds from a request to the head of its response.
        var setUp = 0.0
        /// The throughput of the fastest connection, in bytes a second.
        var best = 0.0
        var slow = StragglerDetector()
    }

    let configuration: Configuration
    /// The open connections, oldest first. The first one fetches all bytes that no other one has claimed.
    var connections: [SegmentConnection] = []
    var lastNumber = 0
    var sources: DownloadSources
    /// The number of the source whose version the part is of.
    var currentSource: Int
    /// The distribution of the file over the connections, once its size is known.
    var table: SegmentTable?
    var growth: ConnectionScaler
    /// Versions that other sources than the part's have shown, by URL.
    var versions: [String: ResourceVersion] = [:]
    /// The other version that the last response claimed, in this attempt or in an earlier one. A response that continues
    /// the part refutes it.
    var unconfirmed: UnconfirmedVersion?
    var traits = ServerTraits()
    var failures = Failures()
    var rates = Rates()
    /// Whether one connection alone may bring the file: several have shown different versions, or the server sends no
    /// ranges.
    var isSingle: Bool
    /// Whether several connections have been open at once.
    var wasShared = false
    var isSuspended = false
    /// Whether the timer of ``tick(_:_:)`` runs.
    var isTicking = false
    /// Whether a request was sent.
    var hasSent = false
    /// Whether a timer will have the last connection request once more.
    var isWaiting = false
    /// Whether the download has completed or failed.
    private(set) var isEnded = false

    /// The number of versions of other sources that are kept.
    static let versionLimit = 256
    static let restartLimit = 2
    /// The number of missing bytes from which on a second connection is opened.
    static let smallestShared: Int64 = 4 << 20
    /// The limit of the doublings of the delay until a connection is added again: 32 seconds.
    static let lossLimit = 5
    /// Milliseconds until a server that refused a second connection is requested from again.
    static let recheckDelay: Int64 = 500
    /// The longest such delay; a longer one is left to the task's retry policy.
    static let maximumRecheckDelay: Int64 = 5_000
    /// Milliseconds between two ticks while one connection is left as it is.
    static let calmInterval: Int64 = 1_000
    /// The reason that is reported where a mirror brings the whole.
    static let fromMirror = "the file is fetched from a mirror"

    init(_ configuration: Configuration, sources: DownloadSources) {
        self.configuration = configuration
        self.sources = sources
        currentSource = sources.own.number
        growth = ConnectionScaler(configuration.segments)
        // Several connections together brought bytes that were wrong as a whole.
        isSingle = configuration.hasMismatch || !configuration.isRepeatable
    }

    // MARK: State

    /// Whether several connections bring the file.
    var isShared: Bool { connections.count > 1 }

    /// Returns the index of a connection. Called for every chunk: the loop allocates nothing in debug builds either.
    func index(of number: Int) -> Int? {
        var index = 0
        while index < connections.count {
            if connections[index].number == number { return index }
            index += 1
        }
        return nil
    }

    subscript(number: Int) -> SegmentConnection? { connections.first { $0.number == number } }

    /// Whether a connection receives a body that belongs to the file. Read for every chunk, so that it copies nothing.
    func isReceiving(_ number: Int) -> Bool { index(of: number).map { connections[$0].isReceiving } ?? false }

    /// Bytes of body that a connection has received.
    func received(_ number: Int) -> Int64 { index(of: number).map { connections[$0].timing.received } ?? 0 }

    /// Changes a connection where it is still open.
    mutating func update(_ number: Int, _ change: (inout SegmentConnection) -> Void) {
        if let index = index(of: number) { change(&connections[index]) }
    }

    /// The number of bytes that are neither written nor gathered; `nil` while the size is not known.
    func missing(_ facts: DownloadFacts) -> Int64? {
        guard let total = facts.part.version.total ?? table?.total, total > 0 else { return nil }
        return max(0, total - facts.part.count - facts.exchanges.reduce(0) { $0 + $1.gathered })
    }

    /// Whether every byte of the file is written or gathered.
    func hasEverything(_ facts: DownloadFacts) -> Bool { missing(facts) == 0 && !facts.part.version.isDecoded }

    /// Whether the part's validator came from this very URL. A validator means nothing to another one (RFC 9110,
    /// section 8.8.3).
    func isVouched(by resource: String?, _ part: PartContents) -> Bool {
        guard let resource, let origin = part.version.origin else { return false }
        return origin == resource
    }

    /// The version that this very URL has shown.
    func version(at resource: String?, _ part: PartContents) -> ResourceVersion? {
        if isVouched(by: resource, part) { return part.version }
        return resource.flatMap { versions[$0] }
    }

    func mayBeJoined(_ part: PartContents) -> Bool { part.mayBeJoined(hasMismatch: configuration.hasMismatch) }

    /// Whether another source could go on with the bytes of the part.
    func hasAlternative(_ source: Int, _ facts: DownloadFacts) -> Bool {
        guard sources.all.count > 1, facts.part.count > 0, facts.part.isJoinable else { return false }
        return sources.best(at: facts.now, users: [:], where: { $0.number != source }) != nil
    }

    /// Whether a response that is not a range may mean that there are too many connections: the server may not have
    /// noticed yet that only one is left. The part is kept until it has been asked once more.
    func mayStillCountClosedConnections(_ part: PartContents) -> Bool {
        wasShared && !isShared && !traits.wasAskedLater && part.count > 0
    }

    /// Whether the rest of a response that is broken off can be requested: the server sends ranges, and a strong
    /// validator ties them to the part.
    func canRequestRest(_ part: PartContents) -> Bool {
        guard let first = connections.first else { return false }
        return configuration.isRepeatable && traits.sendsRanges && isVouched(by: first.resource, part)
            && part.version.validator.ifRange != nil
            && !traits.ignoresCondition
    }

    /// The reason why the source of the part failed, where that may pass.
    func passingFailure(_ part: PartContents) -> TransferError? {
        guard let first = failures.first, part.count > 0, !configuration.leavesFailingSource else { return nil }
        return RetryClass(first).isLasting ? nil : first
    }

    // MARK: The end

    mutating func fail(_ error: TransferError) -> DownloadAction {
        isEnded ? .none : .fail(error)
    }

    /// Records that the download has completed or failed.
    mutating func end() {
        isEnded = true
        connections = []
        isTicking = false
        isWaiting = false
    }
}

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

import Curl

/// A source of a download's file: the task's own URL or a mirror.
struct DownloadSource {
    /// The position in the order of preference; 0 is the task's own URL.
    let number: Int
    let request: TransferRequest
    /// The number of failures since the source last supplied bytes.
    private(set) var failures = 0
    /// The end of the back-off, in milliseconds on the monotonic clock. The source is not used before.
    private var restsUntil: Int64 = 0
    /// Whether the source is excluded because it has a different file or none.
    private(set) var isOut = false
    /// The highest rate of one of its connections, in bytes per second; 0 if none was measured.
    private(set) var rate: Double = 0

    /// The longest response time of the source, in milliseconds.
    private(set) var answerTime: Int64 = 0
    /// The number of requests abandoned before their response, since the source last supplied the requested bytes.
    private(set) var timesLeft = 0

    /// Whether connections to the source have received bytes beside each other.
    private(set) var servesSeveral = false
    /// The end of the time for which the source gets one connection only, because others received nothing beside it; in
    /// milliseconds on the monotonic clock.
    private var servesOneUntil: Int64 = .min

    /// Milliseconds for which a request waits for its response before another source is tried.
    static let firstResponseTimeout: Int64 = 1_500
    private static let longestResponseTimeout: Int64 = 600_000

    /// Milliseconds for which a request to this source waits for its response before another source is tried. The time
    /// doubles each time the source is abandoned, so that slow sources do not alternate endlessly.
    var responseTimeout: Int64 {
        max(2 * answerTime, min(Self.longestResponseTimeout, Self.firstResponseTimeout << Int64(min(timesLeft, 10))))
    }

    /// Milliseconds of back-off after the first failure. It doubles with each further failure.
    static let firstRest: Int64 = 5_000
    private static let longestRest: Int64 = 300_000

    init(number: Int, request: TransferRequest) {
        self.number = number
        self.request = request
    }

    func isUsable(at now: Int64) -> Bool { !isOut && now >= restsUntil }

    /// Records a failure and starts the back-off.
    ///
    /// - Parameter rest: The minimum back-off in milliseconds, as requested by the server.
    mutating func fail(at now: Int64, rest: Int64 = 0) {
        restsUntil = now + max(rest, min(Self.longestRest, Self.firstRest << Int64(min(failures, 10))))
        failures += 1
    }

    mutating func succeed() {
        failures = 0
        timesLeft = 0
    }

    /// Records that another source is tried because this one has not responded.
    mutating func recordDeparture() { timesLeft += 1 }

    /// Records a response time, in milliseconds.
    mutating func record(answerTime: Int64) { self.answerTime = max(self.answerTime, answerTime) }

    /// Records a connection's rate, in bytes per second.
    mutating func record(rate: Double) { self.rate = max(self.rate, rate) }

    mutating func drop() { isOut = true }

    mutating func recordService(ofSeveral: Bool) { servesSeveral = servesSeveral || ofSeveral }

    /// Records that the source serves one connection only.
    mutating func recordSingleService(until time: Int64) { servesOneUntil = max(servesOneUntil, time) }

    func servesOne(at now: Int64) -> Bool { now < servesOneUntil }
}

/// The sources of a download.
struct DownloadSources {
    private(set) var all: [DownloadSource]
    private let request: TransferRequest

    /// The maximum number of sources of a download, from the request and from responses.
    static let limit = 64

    /// Creates the HTTP sources of a request. A file server's URL is used only if there are no mirrors.
    ///
    /// - Parameters:
    ///   - request: The request with its mirrors.
    ///   - wrong: The sources to try last, because they supplied a wrong file; see ``Mismatches/wrong``.
    init(_ request: TransferRequest, wrong: Set<String> = []) {
        self.request = request
        all = [DownloadSource(number: 0, request: request)]
        for mirror in request.mirrors { add(mirror) }
        if RemoteScheme(of: request.url) != nil, all.count > 1 { all.removeFirst() }
        guard !wrong.isEmpty else { return }
        let isWrong = { (source: DownloadSource) in wrong.contains(ResumeData.resource(of: source.request.url)) }
        all = all.filter { !isWrong($0) } + all.filter(isWrong)
    }

    /// The source to begin with.
    var own: DownloadSource { all[0] }

    /// The source of this number; ``own`` where it is unknown.
    subscript(number: Int) -> DownloadSource {
        get { all.first { $0.number == number } ?? all[0] }
        set {
            guard let index = all.firstIndex(where: { $0.number == number }) else { return }
            all[index] = newValue
        }
    }

    /// Adds a mirror.
    ///
    /// - Parameter url: The URL. It is ignored if it is present already or its scheme is not HTTP.
    mutating func add(_ url: String) {
        guard all.count < Self.limit, Self.isHTTP(url), !all.contains(where: { $0.request.url == url }) else { return }
        let last = all.map(\.number).max() ?? 0
        var request = request.redirected(to: url)
        request.isToMirror = true
        all.append(DownloadSource(number: last + 1, request: request))
    }

    private static func isHTTP(_ url: String) -> Bool {
        let scheme = url.firstRange(of: "://").map { url[..<$0.lowerBound].lowercased() }
        return scheme == "http" || scheme == "https"
    }

    /// Returns whether a request has HTTP mirrors.
    static func hasMirrors(_ request: TransferRequest) -> Bool { request.mirrors.contains(where: isHTTP) }

    /// Adds the mirrors listed in a response as its duplicates (RFC 6249, section 2), the best first.
    mutating func add(duplicates head: ResponseHead, at url: CurlURL) {
        let links = head.links.filter { $0.anchor == nil && $0.relations.contains("duplicate") }
        // A lower number means a higher priority. A link without one comes last.
        let ordered = links.map { (Int($0.value(of: "pri") ?? "") ?? 999_999, $0.target) }.sorted { $0.0 < $1.0 }
        for (_, target) in ordered {
            guard let found = try? CurlURL(target, relativeTo: url),
                found.scheme == url.scheme || found.scheme == "https" || request.allowsDowngrade
            else { continue }
            add(found.text)
        }
    }

    /// Returns the idle source that is known to be faster than those in use; otherwise an untried one, if enough
    /// remains for a trial. Each trial without a better result doubles the remaining time that the next trial requires.
    ///
    /// - Parameters:
    ///   - rate: The throughput of all connections together, in bytes per second.
    ///   - left: The number of missing bytes.
    ///   - users: The numbers of the sources in use.
    ///   - isShared: Whether several connections are in use, which the source would join.
    ///   - mayReturn: Whether the source in use supports ranges. If not, a trial may cost all bytes that it has
    ///     supplied.
    func better(
        at now: Int64, than rate: Double, left: Int64, users: Set<Int>, isShared: Bool, mayReturn: Bool
    ) -> DownloadSource? {
        let others = all.filter { !users.contains($0.number) }
        let idle = others.filter { $0.isUsable(at: now) }
        let time = rate > 0 ? Double(left) / rate : .infinity
        let best = idle.filter { $0.rate > 0 }.max { $0.rate < $1.rate }
        let advantage =
            isShared
            ? SegmentTable.slowness : min(SegmentTable.slowness, Self.advantage + Self.reluctance * Double(returns))
        if let best, time >= Self.worthChanging, best.rate > rate * advantage { return best }
        // A source that did not respond is tried again only if no source is known to supply bytes.
        let isAnyKnown = rate > 0 || best != nil
        let untried = idle.filter { $0.rate == 0 && !(isAnyKnown && $0.timesLeft > 0) }
            .min { ($0.timesLeft, $0.number) < ($1.timesLeft, $1.number) }
        let trials = others.count { $0.rate > 0 || $0.timesLeft > 0 }
        let doublings = trials + (isShared || mayReturn ? 0 : Self.riskyDoublings)
        return time >= Self.worthTrying * Double(1 << min(doublings, 10)) ? untried : nil
    }

    /// Records that the only connection moved to a source whose rate is known.
    mutating func recordReturn() { returns += 1 }

    /// The number of moves of the only connection to a source whose rate is known.
    private var returns = 0
    /// The rate that such a source must have, as a multiple of the current rate.
    private static let advantage = 1.3
    /// The increase of ``advantage`` with each move. It keeps sources with varying rates from alternating endlessly.
    private static let reluctance = 0.7
    /// The number of doublings of the required remaining time for a trial that cannot be undone.
    private static let riskyDoublings = 3

    /// The minimum remaining time, in seconds, for a move to a source whose rate is known.
    private static let worthChanging = 2.0
    /// The minimum remaining time, in seconds, for a trial of an untried source.
    private static let worthTrying = 10.0

    /// Returns the source for another connection: an unused one, otherwise the one with the fastest connections or the
    /// fewest failures.
    ///
    /// - Parameters:
    ///   - users: By source, its number of connections and their total rate in bytes per second.
    ///   - isAllowed: Whether the source may supply the missing bytes.
    func best(
        at now: Int64, users: [Int: (count: Int, rate: Double)], where isAllowed: (DownloadSource) -> Bool
    ) -> DownloadSource? {
        let usable = all.filter {
            $0.isUsable(at: now) && isAllowed($0) && (users[$0.number] == nil || !$0.servesOne(at: now))
        }
        if let idle = usable.first(where: { users[$0.number] == nil }) { return idle }
        return usable.max { left, right in
            let (one, other) = (users[left.number] ?? (1, 0), users[right.number] ?? (1, 0))
            return (one.rate / Double(one.count), -left.failures, -left.number)
                < (other.rate / Double(other.count), -right.failures, -right.number)
        }
    }
}

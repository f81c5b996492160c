import Curl

/// One of the places that a download's file can be had from.
struct DownloadSource {
    /// In the order of preference; 0 is the task's own URL.
    let number: Int
    let request: TransferRequest
    /// Failures since it last brought something.
    private(set) var failures = 0
    /// Milliseconds of a clock that no one sets: not asked before.
    private var restsUntil: Int64 = 0
    /// It has another file, or none.
    private(set) var isOut = false
    /// The most that one of its connections brought, in bytes a second; 0: none was looked at.
    private(set) var rate: Double = 0

    /// The longest that it took to answer, in milliseconds.
    private(set) var answerTime: Int64 = 0
    /// How often it was left before it answered, since it last brought what it was asked for.
    private(set) var timesLeft = 0

    /// Milliseconds for which a request is left to itself before another source is asked in its place.
    static let firstPatience: Int64 = 1_500
    private static let longestPatience: Int64 = 600_000

    /// Milliseconds for which a request to this source is left to itself before its answer: twice as long each time that
    /// it was left, so that sources which are slow to answer do not take turns for ever.
    var patience: Int64 {
        max(2 * answerTime, min(Self.longestPatience, Self.firstPatience << Int64(min(timesLeft, 10))))
    }

    /// Milliseconds that a source rests after its first failure; twice as long after each further one.
    static let firstRest: Int64 = 5_000
    private static let longestRest: Int64 = 300_000

    init(number: Int, request: TransferRequest) {
        self.number = number
        self.request = request
    }

    func isUsable(at now: Int64) -> Bool { !isOut && now >= restsUntil }

    /// - Parameter rest: milliseconds that it asked to be left alone.
    mutating func fail(at now: Int64, rest: Int64 = 0) {
        restsUntil = now + max(rest, min(Self.longestRest, Self.firstRest << Int64(min(failures, 10))))
        failures += 1
    }

    mutating func succeed() {
        failures = 0
        timesLeft = 0
    }

    /// Another source is asked in its place, before it answered.
    mutating func leave() { timesLeft += 1 }

    /// One of its requests was answered after so many milliseconds.
    mutating func note(answerTime: Int64) { self.answerTime = max(self.answerTime, answerTime) }

    /// One of its connections brings so many bytes a second.
    mutating func note(rate: Double) { self.rate = max(self.rate, rate) }

    mutating func drop() { isOut = true }
}

/// All sources of one download.
struct DownloadSources {
    private(set) var all: [DownloadSource]
    private let request: TransferRequest

    /// Sources of one download at most, whoever names them.
    static let limit = 64

    /// Sources that HTTP's connections can ask: a file server is none.
    ///
    /// - Parameters:
    ///   - request: names its mirrors.
    ///   - wrong: those that come last, since they brought another file; see ``Mismatches/wrong``.
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

    /// - Parameter url: passed over where it is there already, or of a scheme that connections of HTTP's cannot join.
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

    /// Whether a request names mirrors that HTTP's connections can ask.
    static func hasMirrors(_ request: TransferRequest) -> Bool { request.mirrors.contains(where: isHTTP) }

    /// Adds what an answer names as duplicates of itself (RFC 6249, section 2), the best ones first.
    mutating func add(duplicates head: ResponseHead, at url: CurlURL) {
        let links = head.links.filter { $0.anchor == nil && $0.relations.contains("duplicate") }
        // A lower number is a better one; without one it comes last.
        let ordered = links.map { (Int($0.value(of: "pri") ?? "") ?? 999_999, $0.target) }.sorted { $0.0 < $1.0 }
        for (_, target) in ordered {
            guard let found = try? CurlURL(target, relativeTo: url),
                found.scheme == url.scheme || found.scheme == "https" || request.allowsDowngrade
            else { continue }
            add(found.text)
        }
    }

    /// The idle source that is known to be faster than those in use; otherwise an untried one, where enough is left for a
    /// trial. Each trial that brought nothing better doubles the time that has to be left for the next one.
    ///
    /// - Parameters:
    ///   - rate: bytes a second that all connections bring together.
    ///   - left: bytes that are missing.
    ///   - users: the numbers of the sources in use.
    ///   - isShared: whether several connections are in use, which the source would join.
    ///   - mayReturn: whether the source in use sends parts. Otherwise a trial may cost all that it has brought.
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
        // A source that did not answer is asked again only where no other is known to bring anything.
        let isAnyKnown = rate > 0 || best != nil
        let untried = idle.filter { $0.rate == 0 && !(isAnyKnown && $0.timesLeft > 0) }
            .min { ($0.timesLeft, $0.number) < ($1.timesLeft, $1.number) }
        let trials = others.count { $0.rate > 0 || $0.timesLeft > 0 }
        let doublings = trials + (isShared || mayReturn ? 0 : Self.riskyDoublings)
        return time >= Self.worthTrying * Double(1 << min(doublings, 10)) ? untried : nil
    }

    /// Notes that the only connection went to a source whose rate is known.
    mutating func noteReturn() { returns += 1 }

    /// Changes of the only connection to a source whose rate is known.
    private var returns = 0
    /// The rate that such a source has to have, as a share of the present one, and how much that grows with each change:
    /// sources that vary do not take turns for ever.
    private static let advantage = 1.3
    private static let reluctance = 0.7
    /// Doublings of the time that has to be left for a trial from which there is no way back.
    private static let riskyDoublings = 3

    /// Seconds until the end for which another source is worth it.
    private static let worthChanging = 2.0
    private static let worthTrying = 10.0

    /// The one to put another connection to: one that nobody uses yet, otherwise the one whose connections are the
    /// fastest, or that failed the least.
    ///
    /// - Parameters:
    ///   - users: by source, its connections and the bytes a second of all of them.
    ///   - isAllowed: whether it may bring what is missing.
    func best(
        at now: Int64, users: [Int: (count: Int, rate: Double)], where isAllowed: (DownloadSource) -> Bool
    ) -> DownloadSource? {
        let usable = all.filter { $0.isUsable(at: now) && isAllowed($0) }
        if let idle = usable.first(where: { users[$0.number] == nil }) { return idle }
        return usable.max { left, right in
            let (one, other) = (users[left.number] ?? (1, 0), users[right.number] ?? (1, 0))
            return (one.rate / Double(one.count), -left.failures, -left.number)
                < (other.rate / Double(other.count), -right.failures, -right.number)
        }
    }
}

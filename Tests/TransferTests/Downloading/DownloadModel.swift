import Curl
import TestSupport

@testable import Transfer

/// A server as a value: which version of the file it has, and how it responds to a request for a range.
struct ModelServer: Equatable {
    var version = 1
    var sendsRanges = true
    var hasEntityTag = true
    /// Whether it compares `If-Range` with its own tag (RFC 9110, section 13.1.5).
    var honoursIfRange = true
    /// The status of every response in the place of 200 and 206.
    var refusal: Int?
    /// The largest number of bytes in one response, as some servers have it.
    var largestResponse: Int64 = .max

    var tag: String { "\"v\(version)\"" }
}

/// A whole download as a value: the state machine, a part file that remembers the version of each byte, exchanges with
/// model servers, and timers. It performs every action without I/O, so that a test can order the events as it likes,
/// and copy the model to try other orders.
struct DownloadModel {
    enum Result: Equatable {
        case finished
        case failed(TransferError.Code)
    }

    /// What may happen next.
    enum Event: Hashable {
        /// The server of a connection responds with a head.
        case head(Int)
        /// Bytes of its body come.
        case bytes(Int)
        /// Its body ends, as far as the response goes.
        case end(Int)
        /// Its connection breaks.
        case breakOff(Int)
        case tick
        case wait
        case rest(Int)
    }

    private enum Exchange: Equatable {
        case idle
        case requested(RangeRequest)
        case body(version: Int, next: Int64, end: Int64)
    }

    private struct Connection {
        var exchange = Exchange.idle
        var position: Int64 = 0
        var overlapEnd: Int64 = 0
        var gathered: Range<Int64>?
        var version = 0
        var claimed: ResourceVersion?
    }

    let size: Int64
    let digestVersion: Int?
    let chunk: Int64
    var servers: [ModelServer]
    /// The number of connections that the host allows.
    var room = Int.max
    private(set) var machine: DownloadStateMachine
    private(set) var part = PartContents()
    private var versions: [(range: Range<Int64>, version: Int)] = []
    private var connections: [Int: Connection] = [:]
    private(set) var now: Int64 = 1_000
    private(set) var result: Result?
    private(set) var restarts: [String] = []
    private(set) var received: Int64 = 0
    private(set) var requests = 0
    private var isTickDue = false
    private var waiting: Int?
    private var rests: Set<Int> = []
    private var wallTime: Int64 { 1_700_000_000 }

    /// - Parameters:
    ///   - digestVersion: the version whose digest the destination has; `nil`: none.
    ///   - servers: the first is the file's own; the others are mirrors.
    init(
        size: Int64, segments: Segments = .one, servers: [ModelServer] = [ModelServer()], digestVersion: Int? = nil,
        chunk: Int64 = 1 << 20
    ) {
        self.size = size
        self.servers = servers
        self.digestVersion = digestVersion
        self.chunk = chunk
        var request = TransferRequest(url: "http://own/f")
        request.mirrors = servers.indices.dropFirst().map { "http://mirror\($0)/f" }
        machine = DownloadStateMachine(
            DownloadStateMachine.Configuration(segments: segments), sources: DownloadSources(request))
        connections[machine.start()] = Connection()
        part.hasDigest = digestVersion != nil
        perform(machine.begin(facts))
    }

    private var facts: DownloadFacts {
        DownloadFacts(
            now: now, part: part,
            exchanges: connections.keys.sorted().map { number in
                let connection = connections[number] ?? Connection()
                return ExchangeFacts(
                    number: number, position: connection.position,
                    gathered: Int64(connection.gathered?.count ?? 0), bodyBegun: connection.position > 0)
            })
    }

    /// The invariant that does not hold; `nil` where all do.
    var violation: String? {
        if let violation = machine.violation(facts, isDiskBusy: false) { return violation }
        if result == nil, connections.keys.sorted() != machine.connections.map(\.number).sorted() {
            return "the exchanges are not those of the state machine"
        }
        for connection in machine.connections {
            let isUnderWay = connections[connection.number].map { $0.exchange != .idle } ?? false
            if isUnderWay != connection.isUnderWay { return "an exchange and its state disagree" }
        }
        guard result == .finished else { return nil }
        if part.front < size { return "a file with a gap is complete" }
        let kinds = Set(versions.map(\.version))
        if kinds.count > 1, digestVersion == nil { return "bytes of versions \(kinds.sorted()) meet" }
        return nil
    }

    // MARK: Events

    /// Every event that may happen now.
    var possibleEvents: [Event] {
        if result != nil { return [] }
        var events: [Event] = []
        for (number, connection) in connections.sorted(by: { $0.key < $1.key }) {
            switch connection.exchange {
            case .idle: break
            case .requested: events += [.head(number), .breakOff(number)]
            case .body(_, let next, let end):
                events += next < end ? [.bytes(number), .breakOff(number)] : [.end(number)]
            }
        }
        if isTickDue { events.append(.tick) }
        if waiting != nil { events.append(.wait) }
        return events + rests.sorted().map { .rest($0) }
    }

    mutating func happen(_ event: Event, after milliseconds: Int64 = 50) {
        now += milliseconds
        switch event {
        case .head(let number): respond(number)
        case .bytes(let number): receive(number)
        case .end(let number): end(number, nil)
        case .breakOff(let number): end(number, TransferError(.truncated, "the connection broke"))
        case .tick:
            isTickDue = false
            let observations = DownloadStateMachine.Observations(received: received)
            perform(machine.tick(observations, facts))
            perform(machine.tickSources(facts))
            perform(machine.tickEnded(facts))
        case .wait:
            guard let number = waiting else { return }
            waiting = nil
            perform(machine.waitEnded(number, facts))
        case .rest(let number):
            rests.remove(number)
            perform(machine.restEnded(number, facts))
        }
    }

    private func server(of number: Int) -> ModelServer {
        let source = machine[number]?.source ?? 0
        return source < servers.count ? servers[source] : ModelServer()
    }

    private func url(of number: Int) -> CurlURL? {
        try? CurlURL(machine.sources[machine[number]?.source ?? 0].request.url)
    }

    private mutating func respond(_ number: Int) {
        guard case .requested(let range) = connections[number]?.exchange, let url = url(of: number) else { return }
        let server = server(of: number)
        var fields = server.hasEntityTag ? ["ETag: \(server.tag)"] : []
        var (status, offset, end) = (200, Int64(0), size)
        if let refusal = server.refusal {
            (status, end) = (refusal, 1_000)
            fields = ["Content-Length: 1000"]
        } else if case .range(let from, let last, let ifRange) = range, server.sendsRanges,
            ifRange == nil || !server.honoursIfRange || ifRange == server.tag
        {
            if from >= size {
                (status, end) = (416, 0)
                fields += ["Content-Range: bytes */\(size)", "Content-Length: 0"]
            } else {
                (status, offset, end) = (206, from, min((last ?? size - 1) + 1, size))
                end = min(end, from + min(server.largestResponse, size))
                fields += ["Content-Range: bytes \(from)-\(end - 1)/\(size)", "Content-Length: \(end - from)"]
            }
        } else {
            fields += ["Content-Length: \(size)"]
        }
        let context = DownloadStateMachine.HeadContext(hasDestinationDigest: digestVersion != nil, wallTime: wallTime)
        let head = head(status, fields)
        let action = machine.headReceived(number, head, at: url, context, facts)
        connections[number]?.exchange = .body(version: server.version, next: offset, end: end)
        guard case .receive(let plan) = action else { return }
        if plan.keepsFront {
            _ = part.keepFront()
            versions = versions.filter { $0.range.lowerBound < part.front }
        }
        if let reason = plan.startsOver { dropPart(number, reason) }
        connections[number]?.position = plan.offset
        connections[number]?.overlapEnd = part.written.end(ofRangeAt: plan.offset)
        connections[number]?.gathered = nil
        connections[number]?.claimed = plan.claimed
        if plan.isShare {
            if machine.isVouched(by: ResumeData.resource(of: url.text), part) {
                part.adopt(plan.claimed)
            } else {
                _ = part.join()
            }
            connections[number]?.claimed = nil
        }
        adopt(number)
        part.hasDigest = digestVersion != nil
        perform(machine.bodyBegan(number, plan, head, at: url, facts))
    }

    /// Takes over what the head said, once the body has been compared with the bytes of the part.
    private mutating func adopt(_ number: Int) {
        guard let connection = connections[number], connection.position >= connection.overlapEnd,
            let claimed = connection.claimed
        else { return }
        part.adopt(claimed)
        connections[number]?.claimed = nil
    }

    private mutating func receive(_ number: Int) {
        guard var connection = connections[number], case .body(let version, let next, let end) = connection.exchange
        else { return }
        let count = min(chunk, end - next)
        connection.exchange = .body(version: version, next: next + count, end: end)
        connection.version = version
        connections[number] = connection
        received += count
        switch machine.bytesReceived(Int(count), on: number, at: connection.position, isDecoding: false) {
        case .append: append(count, number)
        case .fulfil(let count):
            append(Int64(count), number)
            if connections[number] != nil { self.end(number, .cancelled) }
        case .ignore: break
        case .refuse: self.end(number, .cancelled)
        case .fail(let error): refuse(number, error)
        }
    }

    private mutating func refuse(_ number: Int, _ error: TransferError) {
        machine.bodyRefused(number, error)
        end(number, error)
    }

    private mutating func append(_ count: Int64, _ number: Int) {
        guard var connection = connections[number] else { return }
        var rest = connection.position..<connection.position + count
        if connection.position < connection.overlapEnd {
            let compared = rest.clamped(to: connection.position..<connection.overlapEnd)
            let isSame = versions.allSatisfy { !$0.range.overlaps(compared) || $0.version == connection.version }
            guard isSame else { return refuse(number, TransferError(.remoteChanged, "the bytes differ")) }
            connection.position = compared.upperBound
            rest = compared.upperBound..<rest.upperBound
            connections[number] = connection
            adopt(number)
        }
        guard !rest.isEmpty else { return }
        connection = connections[number] ?? connection
        connection.gathered = (connection.gathered?.lowerBound ?? rest.lowerBound)..<rest.upperBound
        connection.position = rest.upperBound
        connections[number] = connection
        // The buffer is full from time to time.
        if rest.upperBound % (4 << 20) == 0 { flush(number) }
    }

    private mutating func flush(_ number: Int) {
        guard let gathered = connections[number]?.gathered, let version = connections[number]?.version else { return }
        connections[number]?.gathered = nil
        part.record(gathered)
        versions.append((gathered, version))
    }

    private mutating func end(_ number: Int, _ error: TransferError?) {
        guard var connection = connections[number], connection.exchange != .idle else { return }
        connection.exchange = .idle
        connections[number] = connection
        var end = DownloadStateMachine.ExchangeEnd(
            error: error, hasDigest: digestVersion != nil, position: connection.position)
        if connection.position < connection.overlapEnd {
            end.overlapError = TransferError(.remoteChanged, "the file is shorter")
        }
        perform(machine.ended(number, end, facts))
    }

    private mutating func dropPart(_ number: Int, _ reason: String) {
        if part.count > 0 { restarts.append(reason) }
        part.removeAll()
        versions = []
        connections[number]?.gathered = nil
        isTickDue = false
    }

    // MARK: Actions

    private mutating func perform(_ action: DownloadAction) {
        if result != nil { return }
        switch action {
        case .none: break
        case .send(let number, let reason):
            guard connections[number] != nil else { return }
            if let reason { dropPart(number, reason) }
            send(number)
        case .flush(let number, let continuation):
            guard connections[number] != nil else { return }
            flush(number)
            perform(machine.flushed(number, continuation, facts))
        case .rest(let number, _): rests.insert(number)
        case .wait(let number, _): waiting = number
        case .borrow(let wish):
            perform(machine.limitAnswered(wish, isGranted: connections.count < room, facts))
        case .giveBack: break
        case .open(let wish): connections[wish.number] = Connection()
        case .grow(let target): perform(machine.grow(to: target, facts))
        case .close(let number): connections[number] = nil
        case .closeOthers(let number): connections = connections.filter { $0.key == number }
        case .replace(let old, let new, _, let isJoining):
            connections[old] = nil
            connections[new] = Connection()
            if isJoining { _ = part.join() }
        case .interrupt(let number): end(number, .cancelled)
        case .goBack: break
        case .tick: isTickDue = true
        case .restart(let number, let reason): dropPart(number, reason)
        case .finish(let number): finish(number)
        case .fail(let error):
            for number in connections.keys { flush(number) }
            conclude(.failed(error.code))
        case .sequence(let actions): for action in actions { perform(action) }
        }
    }

    private mutating func send(_ number: Int) {
        guard let url = url(of: number) else { return }
        requests += 1
        var range = machine.requestRange(number, at: ResumeData.resource(of: url.text), facts)
        if case .overlap = range { range = machine.overlapBegins(number, at: max(0, part.front - (256 << 10))) }
        connections[number]?.exchange = .requested(range)
    }

    private mutating func finish(_ number: Int) {
        for number in connections.keys { flush(number) }
        guard part.front >= size else {
            return perform(machine.diskFailed(number, TransferError(.remoteChanged, "a gap"), facts))
        }
        conclude(.finished)
    }

    private mutating func conclude(_ result: Result) {
        self.result = result
        machine.end()
        connections = [:]
    }
}

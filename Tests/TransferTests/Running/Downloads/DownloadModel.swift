import Curl
import TestSupport

@testable import Transfer

/// What may happen next in a ``DownloadModel``.
enum ModelEvent: Hashable {
    /// A request arrives, and its response begins up to the end of the head.
    case head(Int)
    /// Bytes of a body come.
    case bytes(Int)
    /// A response ends, as far as the server goes.
    case end(Int)
    /// A connection breaks.
    case breakOff(Int)
    case tick
    case wait
    case delayEnded(Int)
}

extension ModelEvent: CustomStringConvertible {
    var description: String {
        switch self {
        case .head(let number): "head\(number)"
        case .bytes(let number): "bytes\(number)"
        case .end(let number): "end\(number)"
        case .breakOff(let number): "break\(number)"
        case .tick: "tick"
        case .wait: "wait"
        case .delayEnded(let number): "delayEnded\(number)"
        }
    }
}

/// A digest, and the resource that has it.
struct ModelDigest {
    var digest: FileDigest
    var resource: Resource
}

/// What an attempt leaves for the next one.
struct ModelLeftover {
    var part = PartContents()
    var file = ModelFile()
    var unconfirmed: UnconfirmedVersion?
    var network = ModelNetwork()
    var now: Int64 = 1_000
    var generator = SeededGenerator(seed: 0)
}

/// A whole download as a value: the state machines of the download and of each connection's transaction, a part file
/// that remembers where each byte is from, responses of model servers, and timers. It performs every action without
/// I/O, so that a test can order the events as it likes, and copy the model to try other orders.
struct DownloadModel {
    enum Result: Equatable {
        case finished
        case failed(TransferError.Code)
    }

    struct Settings {
        var url = "http://own/f"
        var mirrors: [String] = []
        var segments: Segments = .one
        /// The digest that the destination has.
        var digest: ModelDigest?
        /// The digests that servers state.
        var statedDigests: [ModelDigest] = []
        /// The contents that the finished file may have.
        var versions: [Resource]
        var chunk: Int64 = 1 << 20
    }

    struct Connection {
        let number: Int
        var transaction: TransactionStateMachine
        var parser = ResponseHeadParser()
        /// A request that has not arrived yet.
        var request: ModelRequest?
        /// The response under way.
        var response: ModelExchange?
        /// The connection that carries them, and its origin.
        var line: (connection: ModelNetwork.Connection, origin: String)?
        var readAt: Int64 = 0
        var writer = Writer()

        var isBusy: Bool { request != nil || response != nil }

        init(_ number: Int, _ transaction: TransactionStateMachine) {
            self.number = number
            self.transaction = transaction
        }

        init(_ number: Int, _ request: TransferRequest) {
            self.init(number, TransactionStateMachine(request, TransactionStateMachine.Configuration()))
        }
    }

    struct Writer {
        var position: Int64 = 0
        var overlapEnd: Int64 = 0
        var gathered: [ModelContent] = []
        /// The number of gathered bytes.
        var pending: Int64 = 0
        var claimed: ResourceVersion?
        var decoder: BodyDecoder?

        mutating func drop() {
            gathered = []
            pending = 0
        }
    }

    let settings: Settings
    /// The servers, in the order of the sources.
    var servers: [ModelServer]
    /// The number of connections that the host allows.
    var room = Int.max
    /// The number of body bytes that the servers may still send before they close every connection.
    var allowance = Int64.max
    var machine: DownloadStateMachine
    var part: PartContents
    var file: ModelFile
    /// The connections, in the order of their numbers.
    var connections: [Connection] = []
    /// The numbers of ``connections``.
    private var numbers: [Int] = []
    var network: ModelNetwork
    var now: Int64
    private(set) var result: Result?
    private(set) var error: TransferError?
    var received: Int64 = 0
    var requests = 0
    var restarts: [String] = []
    /// The expected digest of the file.
    var digest: FileDigest?
    var stated: StatedDigest?
    var isPlaced = false
    /// The first action that the model does not know; `nil` if there is none.
    var fault: String?
    private var tickAt: Int64?
    private var waiting: (number: Int, time: Int64)?
    private var requestDelays: [Int: Int64] = [:]
    var generator: SeededGenerator

    /// Milliseconds without a byte after which a response has stalled.
    static let stallTimeout: Int64 = 1_000
    static let wallTime: Int64 = 1_700_000_000

    /// - Parameter leftover: what an earlier attempt left.
    init(_ settings: Settings, servers: [ModelServer], after leftover: ModelLeftover = ModelLeftover()) {
        self.settings = settings
        self.servers = servers
        (part, file, network) = (leftover.part, leftover.file, leftover.network)
        (now, generator) = (leftover.now, leftover.generator)
        var request = TransferRequest(url: settings.url)
        request.mirrors = settings.mirrors
        machine = DownloadStateMachine(
            DownloadStateMachine.Configuration(segments: settings.segments), sources: DownloadSources(request))
        machine.unconfirmed = leftover.unconfirmed
        let first = machine.start()
        open(Connection(first, machine.sources.own.request))
        start(first)
    }

    private mutating func start(_ first: Int) {
        if let total = part.version.total, part.count == total, total > 0 { return perform(.finish(first)) }
        do throws(TransferError) {
            if part.count > 0, settings.digest != nil { try place(nil) }
        } catch {
            return perform(machine.diskFailed(first, error, facts))
        }
        perform(machine.begin(facts))
    }

    /// Returns the index of a connection. The numbers are kept apart, so that the search copies no connection.
    func index(of number: Int) -> Int? {
        var index = 0
        while index < numbers.count {
            if numbers[index] == number { return index }
            index += 1
        }
        return nil
    }

    private mutating func open(_ connection: Connection) {
        connections.append(connection)
        numbers.append(connection.number)
    }

    private mutating func drop(_ number: Int) {
        release(number)
        requestDelays[number] = nil
        guard let index = index(of: number) else { return }
        connections.remove(at: index)
        numbers.remove(at: index)
    }

    var facts: DownloadFacts {
        var facts = DownloadFacts(now: now, part: part, exchanges: [])
        facts.exchanges.reserveCapacity(connections.count)
        var index = 0
        while index < connections.count {
            facts.exchanges.append(
                ExchangeFacts(
                    number: numbers[index], position: connections[index].writer.position,
                    gathered: connections[index].writer.pending,
                    bodyBegun: connections[index].transaction.exchange.bodyBegun,
                    isShortcut: connections[index].transaction.isShortcut))
            index += 1
        }
        return facts
    }

    /// What a failed attempt leaves for the next one.
    var leftover: ModelLeftover {
        var leftover = ModelLeftover(network: network, now: now, generator: generator)
        guard part.count > 0, error?.code != .checksumMismatch else { return leftover }
        leftover.unconfirmed = machine.unconfirmed
        leftover.part = PartContents(version: part.version, written: part.written)
        leftover.file = file
        return leftover
    }

    /// The invariant that does not hold; `nil` where all do.
    var violation: String? {
        if let fault { return fault }
        if let violation = machine.violation(facts, isDiskBusy: false) { return violation }
        if connections.count != machine.connections.count { return "the exchanges are not those of the state machine" }
        for connection in machine.connections {
            guard let index = index(of: connection.number) else { return "a connection without an exchange" }
            if let violation = connections[index].transaction.violation { return violation }
            if connections[index].transaction.isUnderWay != connection.isUnderWay {
                return "an exchange and its state disagree"
            }
        }
        guard result == .finished, !settings.versions.contains(where: { file.isWhole($0, size: part.front) }) else {
            return nil
        }
        return "the finished file of \(part.front) bytes is no version of the resource"
    }

    // MARK: Events

    /// Every event that may happen now.
    var possibleEvents: [ModelEvent] {
        if result != nil { return [] }
        var events: [ModelEvent] = []
        for (index, number) in numbers.enumerated() {
            if let isAtEnd = connections[index].response?.isAtEnd {
                events += isAtEnd ? [.end(number)] : [.bytes(number), .breakOff(number)]
            } else if connections[index].request != nil {
                events += [.head(number), .breakOff(number)]
            }
        }
        if tickAt != nil { events.append(.tick) }
        if waiting != nil { events.append(.wait) }
        return events + requestDelays.keys.sorted().map { .delayEnded($0) }
    }

    mutating func happen(_ event: ModelEvent, after milliseconds: Int64 = 50) {
        now += milliseconds
        switch event {
        case .head(let number): respond(number)
        case .bytes(let number), .end(let number): read(number)
        case .breakOff(let number): endExchange(number, .failed(.recvError))
        case .tick:
            now = max(now, tickAt ?? now)
            tickAt = nil
            perform(machine.tick(DownloadStateMachine.Observations(received: received), facts))
            perform(machine.tickSources(facts))
            perform(machine.tickEnded(facts))
        case .wait:
            guard let (number, time) = waiting else { return }
            now = max(now, time)
            waiting = nil
            perform(machine.waitEnded(number, facts))
        case .delayEnded(let number):
            now = max(now, requestDelays.removeValue(forKey: number) ?? now)
            perform(machine.delayEnded(number, facts))
        }
    }

    // MARK: Actions of the download

    mutating func perform(_ action: DownloadAction) {
        if result != nil { return }
        switch action {
        case .none, .giveBack: break
        case .rememberSingleService(let number): machine.singleServiceRemembered(by: number, until: now + 600_000)
        case .send(let number):
            guard index(of: number) != nil else { return }
            report(number) { $0.start() }
        case .flush(let number, let continuation):
            guard index(of: number) != nil else { return }
            flush(number)
            perform(machine.flushed(number, continuation, facts))
        case .delayRequest(let number, let milliseconds): requestDelays[number] = now + milliseconds
        case .wait(let number, let milliseconds): waiting = (number, now + milliseconds)
        case .borrow(let wish):
            perform(machine.limitAnswered(wish, isGranted: connections.count < room, facts))
        case .open(let wish):
            guard let like = wish.like.flatMap({ index(of: $0) }) else {
                return open(Connection(wish.number, machine.sources[wish.source].request))
            }
            open(Connection(wish.number, TransactionStateMachine(following: connections[like].transaction)))
        case .grow(let target): perform(machine.grow(to: target, facts))
        case .close(let number): drop(number)
        case .closeOthers(let number):
            for other in numbers where other != number { drop(other) }
        case .replace(let old, let new, let source, let isJoining):
            drop(old)
            open(Connection(new, machine.sources[source].request))
            if isJoining { _ = part.join() }
        case .interrupt(let number): report(number) { $0.cancel(.cancelled) }
        case .requestOwnURL(let number):
            guard let source = machine[number]?.source, let index = index(of: number) else { return }
            connections[index].transaction.restart(from: machine.sources[source].request)
        case .tick(let milliseconds): tickAt = now + milliseconds
        case .restart(let number, let reason):
            if let reason { dropPart(number, reason) }
            stopTick()
            requestDelays[number] = nil
        case .finish(let number): finish(number)
        case .fail(let error):
            flushAll()
            conclude(.failed(error.code), error)
        case .sequence(let actions): for action in actions { perform(action) }
        }
    }

    /// Stops the timer of the next tick.
    mutating func stopTick() { tickAt = nil }

    mutating func conclude(_ result: Result, _ error: TransferError? = nil) {
        self.result = result
        self.error = error
        machine.end()
        for number in numbers { drop(number) }
    }
}

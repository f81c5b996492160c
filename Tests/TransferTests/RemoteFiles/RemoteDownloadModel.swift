@testable import Transfer

/// A whole download from a file server as a value: the state machine, a part file that remembers the version of each
/// byte, and a server whose file may change. It performs every action without I/O.
struct RemoteDownloadModel {
    enum Result: Equatable {
        case finished, switchedToMirrors
        case failed(TransferError.Code)
    }

    /// What may happen next.
    enum Event: Hashable {
        case bytes
        /// The step ends as libcurl reports it. Where it took longer or was paused, its end needs a second look.
        case end(isBrief: Bool)
        case breakOff
        case diskFailure
        case cancel
    }

    /// The file on the server.
    struct File: Equatable {
        enum Kind { case file, directory, missing }

        var kind = Kind.file
        /// The version, which is the file's time too.
        var version = 1
        var size: Int64
        var tellsSize = true
        var tellsTime = true

        var facts: RemoteFacts {
            RemoteFacts(
                size: tellsSize ? size : nil, time: tellsTime ? 1_600_000_000 + Int64(version) : nil)
        }
    }

    private enum Exchange: Equatable {
        case idle
        case look
        case directory
        case fetch(File, next: Int64)
    }

    static let chunk: Int64 = 100_000

    var file: File
    private(set) var machine: RemoteDownloadStateMachine
    private(set) var part: PartContents
    private var versions: [(range: Range<Int64>, version: Int)] = []
    private var exchange = Exchange.idle
    private var position: Int64 = 0
    private var overlapEnd: Int64 = 0
    private var claimed: ResourceVersion?
    private var pendingError: TransferError?
    private(set) var result: Result?
    private(set) var restarts = 0
    private(set) var steps = 0

    /// - Parameters:
    ///   - present: the number of bytes of the file's present version that an earlier attempt has received.
    ///   - hasMirrors: whether the request names mirrors.
    init(_ file: File, present: Int64, hasMirrors: Bool) {
        self.file = file
        let resource = ResumeData.resource(of: "ftp://h/f")
        machine = RemoteDownloadStateMachine(
            RemoteDownloadStateMachine.Configuration(
                resource: resource, host: "h", path: "f", hasMirrors: hasMirrors))
        part = PartContents()
        if present > 0 {
            part = PartContents(
                version: file.facts.version(of: "ftp://h/f"), written: ByteRangeSet([0..<present]))
            versions = [(0..<present, file.version)]
        }
    }

    mutating func start() { perform(machine.begin(part)) }

    /// The invariant that does not hold; `nil` where all do.
    var violation: String? {
        if let violation = machine.violation(part, at: position) { return violation }
        if result == nil, exchange == .idle { return "no event will come" }
        if result != nil, exchange != .idle { return "an exchange outlives its download" }
        guard result == .finished else { return nil }
        let kinds = Set(versions.map(\.version))
        if kinds.count > 1 { return "bytes of versions \(kinds.sorted()) meet" }
        if let total = part.version.total, part.front != total { return "a file with a gap is complete" }
        return nil
    }

    // MARK: Events

    var possibleEvents: [Event] {
        switch exchange {
        case .idle: []
        case .look: [.end(isBrief: true), .breakOff, .diskFailure, .cancel]
        case .directory: [.bytes, .end(isBrief: true), .breakOff, .diskFailure, .cancel]
        case .fetch(let file, let next):
            (file.kind == .file && next < file.size ? [.bytes] : [.end(isBrief: true), .end(isBrief: false)])
                + [.breakOff, .diskFailure, .cancel]
        }
    }

    mutating func happen(_ event: Event) {
        switch event {
        case .bytes: receive()
        case .end(let isBrief): end(isBrief: isBrief)
        case .breakOff: end(RemoteEnding(error: TransferError(.truncated, "r"), facts: facts))
        case .diskFailure: perform(machine.diskFailed(TransferError(.diskFull, "r")))
        case .cancel: end(RemoteEnding(error: .cancelled, isLocal: true))
        }
    }

    private var facts: RemoteFacts {
        if case .fetch(let opened, _) = exchange { opened.facts } else { file.facts }
    }

    private mutating func end(_ ending: RemoteEnding) {
        exchange = .idle
        perform(machine.stepEnded(ending, part, at: position))
    }

    private mutating func end(isBrief: Bool) {
        var ending = RemoteEnding(facts: facts, duration: isBrief ? 10 : 5_000)
        let missing = TransferError(.notFound, "r")
        switch exchange {
        case .idle: return
        case .look: if file.kind == .missing { ending.error = missing }
        case .directory: if file.kind != .directory { ending.error = missing }
        case .fetch(let opened, _):
            if opened.kind == .missing { ending.error = missing }
            if opened.kind == .directory {
                ending.error = TransferError(.cannotConnect, "r")
                ending.isOfDirectory = true
            }
        }
        end(ending)
    }

    private mutating func receive() {
        do throws(TransferError) {
            var count = Self.chunk
            if case .fetch(let opened, let next) = exchange { count = min(count, opened.size - next) }
            var action = machine.bytesReceived(Int(count), at: position)
            if case .begin = action {
                begin(try machine.fileBegins(facts, part))
                action = machine.bytesReceived(Int(count), at: position)
            }
            if case .refuse(let error) = action { throw error }
            guard case .fetch(let opened, let next) = exchange else { return }
            exchange = .fetch(opened, next: next + count)
            try append(count, of: opened.version)
        } catch {
            end(RemoteEnding(error: error, facts: facts, isLocal: true))
        }
    }

    private mutating func append(_ count: Int64, of version: Int) throws(TransferError) {
        let bytes = position..<position + count
        let compared = bytes.clamped(to: 0..<max(overlapEnd, 0))
        guard versions.allSatisfy({ !$0.range.overlaps(compared) || $0.version == version }) else {
            throw TransferError(.remoteChanged, "the bytes differ")
        }
        position = bytes.upperBound
        adopt()
        let fresh = max(bytes.lowerBound, overlapEnd)..<max(bytes.upperBound, overlapEnd)
        guard !fresh.isEmpty else { return }
        part.record(fresh)
        versions.append((fresh, version))
    }

    private mutating func begin(_ plan: RemoteBodyPlan) {
        if plan.isJoining { _ = part.join() }
        position = plan.offset
        overlapEnd = part.written.end(ofRangeAt: plan.offset)
        claimed = plan.facts.version(of: "ftp://h/f")
        adopt()
        machine.fileBegan(plan)
    }

    private mutating func adopt() {
        guard position >= overlapEnd, let claimed else { return }
        part.adopt(claimed)
        self.claimed = nil
    }

    // MARK: Actions

    private mutating func perform(_ action: RemoteDownloadAction) {
        if result != nil { return }
        switch action {
        case .none: break
        case .learnDigest: perform(machine.prepared(part))
        case .findOffset(let known):
            do throws(TransferError) {
                let front = part.front
                let offset = try known.offset(have: front) { (overlap) throws(TransferError) in
                    max(0, front - Int64(overlap.width))
                }
                perform(machine.offsetFound(offset))
            } catch {
                perform(machine.failed(error))
            }
        case .request(let offset, let reason):
            if reason != nil { drop() }
            steps += 1
            exchange = .fetch(file, next: offset)
        case .beginEmpty(let plan, let ending):
            begin(plan)
            perform(.endBytes(ending))
        case .endBytes(let ending):
            if position < overlapEnd {
                return perform(machine.failed(TransferError(.remoteChanged, "the file is shorter")))
            }
            perform(machine.bytesEnded(ending, at: position))
        case .confirm:
            steps += 1
            exchange = .look
        case .checkDirectory:
            steps += 1
            exchange = .directory
        case .abort(let error): end(RemoteEnding(error: error, isLocal: true))
        case .switchToMirrors: conclude(.switchedToMirrors)
        case .complete: conclude(.finished)
        case .fail(let error): conclude(.failed(error.code))
        }
    }

    private mutating func drop() {
        restarts += 1
        part.removeAll()
        versions = []
    }

    private mutating func conclude(_ result: Result) {
        self.result = result
        exchange = .idle
        machine.end()
    }
}

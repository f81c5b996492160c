import Testing

@testable import Transfer

/// The transitions of a download from a file server as tables: every event in every phase, and every failure in every
/// situation of the part and its mirrors.
@Suite("The transitions of a download from a file server")
struct RemoteDownloadTransitionTests {
    typealias Machine = RemoteDownloadStateMachine

    private static let size: Int64 = 32 << 20
    private static let half: Int64 = 16 << 20
    private static let resource = "ftp://h/f"
    private static let facts = RemoteFacts(size: size, time: 1_600_000_000)

    enum Phase: String, CaseIterable {
        case preparing, requesting, receiving, received, confirming, checking, completing, ended
    }

    private static func configuration(
        hasMirrors: Bool = false, hasMismatch: Bool = false, isWrong: Bool = false
    ) -> Machine.Configuration {
        Machine.Configuration(
            resource: resource, host: "h", path: "/f", maximumSize: 64 << 20, hasMirrors: hasMirrors,
            hasMismatch: hasMismatch, isWrong: isWrong)
    }

    private static func part(
        _ count: Int64 = half, origin: String = resource, facts: RemoteFacts = facts
    ) -> PartContents {
        if count == 0 { return PartContents() }
        var version = facts.version(of: origin)
        version.origin = origin
        return PartContents(version: version, written: ByteRangeSet([0..<count]))
    }

    /// A machine in a phase with half of a file, and the position behind the last byte.
    private static func machine(in phase: Phase) -> (Machine, Int64) {
        var machine = Machine(configuration())
        let part = part()
        if phase == .preparing { return (machine, 0) }
        _ = machine.begin(part)
        _ = machine.offsetFound(half)
        switch phase {
        case .preparing, .requesting: return (machine, half)
        case .checking:
            _ = machine.stepEnded(directory, part, at: half)
            return (machine, half)
        case .ended:
            machine.end()
            return (machine, half)
        case .receiving, .received, .confirming, .completing: break
        }
        if let plan = try? machine.fileBegins(facts, part) { machine.fileBegan(plan) }
        if phase == .receiving { return (machine, half + 1_000) }
        if phase == .received { return (machine, size) }
        _ = machine.bytesEnded(RemoteEnding(duration: phase == .confirming ? 9_000 : 10), at: size)
        return (machine, size)
    }

    private static let directory = RemoteEnding(
        error: TransferError(.cannotConnect, "r"), facts: RemoteFacts(size: 4096), isOfDirectory: true)

    private static func words(_ action: RemoteDownloadAction) -> String {
        switch action {
        case .none: "-"
        case .learnDigest: "learn digest"
        case .findOffset(let facts):
            "find offset of \(facts.size.map { "\($0 >> 20)M" } ?? "nothing")\(facts.time == nil ? "" : ", timed")"
        case .request(let offset, let reason): "\(reason == nil ? "" : "drop, ")request \(offset >> 20)M"
        case .beginEmpty: "begin empty"
        case .endBytes: "end bytes"
        case .confirm: "confirm"
        case .checkDirectory: "check directory"
        case .abort(let error): "abort \(error.code.rawValue)"
        case .switchToMirrors(let error): "mirrors \(error.code.rawValue)"
        case .complete: "complete"
        case .fail(let error): "fail \(error.code.rawValue)"
        }
    }

    private static func words(_ action: RemoteFileBytesAction) -> String {
        switch action {
        case .begin: "begin"
        case .append: "append"
        case .refuse(let error): "refuse \(error.code.rawValue)"
        }
    }

    // MARK: Events

    private typealias Event = @Sendable (inout Machine, Int64) -> String

    private static let events: [(String, Event)] = beginnings + bytes + ends + failures

    private static let beginnings: [(String, Event)] = [
        ("begin", { machine, _ in words(machine.begin(part())) }),
        ("prepared", { machine, _ in words(machine.prepared(part())) }),
        ("prepared, all here", { machine, _ in words(machine.prepared(part(size))) }),
        ("offset found", { machine, _ in words(machine.offsetFound(half)) }),
        ("no offset found", { machine, _ in words(machine.offsetFound(nil)) }),
        ("file begins", { machine, _ in begins(&machine, facts) }),
        ("other file begins", { machine, _ in begins(&machine, RemoteFacts(size: size + 1, time: 1)) }),
        ("huge file begins", { machine, _ in begins(&machine, RemoteFacts(size: 65 << 20), PartContents()) }),
    ]

    private static func begins(
        _ machine: inout Machine, _ facts: RemoteFacts, _ part: PartContents = part()
    ) -> String {
        do throws(TransferError) {
            return "from \(try machine.fileBegins(facts, part).offset >> 20)M"
        } catch {
            return "refuse \(error.code.rawValue)"
        }
    }

    private static let bytes: [(String, Event)] = [
        ("bytes", { machine, position in words(machine.bytesReceived(1, at: min(position, size - 1))) }),
        ("too many bytes", { machine, position in words(machine.bytesReceived(Int(size), at: position)) }),
        ("bytes ended, brief", { machine, position in words(machine.bytesEnded(RemoteEnding(), at: position)) }),
        (
            "bytes ended, long",
            { machine, position in words(machine.bytesEnded(RemoteEnding(duration: 1_000), at: position)) }
        ),
        (
            "bytes ended, paused",
            { machine, position in words(machine.bytesEnded(RemoteEnding(hasPaused: true), at: position)) }
        ),
    ]

    private static let endings: [(String, RemoteEnding)] = [
        ("well", RemoteEnding(facts: facts)), ("other time", RemoteEnding(facts: RemoteFacts(size: size, time: 1))),
        ("not found", error(.notFound)), ("truncated", error(.truncated)), ("stalled", error(.stalled)),
        ("changed", error(.remoteChanged)), ("directory", directory),
        ("cancelled", RemoteEnding(error: .cancelled, isLocal: true)),
        ("too large", RemoteEnding(error: TransferError(.tooLarge, "r"), isLocal: true)),
    ]

    private static func ended(_ ending: RemoteEnding) -> Event {
        { machine, position in words(machine.stepEnded(ending, part(), at: position)) }
    }

    private static let ends: [(String, Event)] = endings.map { ("ended: \($0)", ended($1)) }

    private static let failures: [(String, Event)] = [
        ("failed", { machine, _ in words(machine.failed(TransferError(.diskFull, "r"))) }),
        ("failed: changed", { machine, _ in words(machine.failed(TransferError(.remoteChanged, "r"))) }),
        ("disk failed", { machine, _ in words(machine.diskFailed(TransferError(.diskFull, "r"))) }),
    ]

    private static func error(_ code: TransferError.Code) -> RemoteEnding {
        RemoteEnding(error: TransferError(code, "r"))
    }

    private func compare(_ found: [String], _ expected: [String]) {
        for (row, expected) in zip(found, expected) { #expect(row == expected) }
        #expect(found.count == expected.count)
        if found != expected { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    @Test("every event in every phase")
    func events() {
        let found = Self.events.map { name, event in
            let cells = Phase.allCases.map { phase -> String in
                var (machine, position) = Self.machine(in: phase)
                return event(&machine, position)
            }
            return ([name] + cells).joined(separator: " | ")
        }
        compare(found, Self.expectedEvents)
    }

    /// The columns are the phases, in their order.
    private static let expectedEvents: [String] = [
        "begin | find offset of 32M, timed | - | - | - | - | - | - | -",
        "prepared | find offset of 32M, timed | - | - | - | - | - | - | -",
        "prepared, all here | confirm | - | - | - | - | - | - | -",
        "offset found | request 16M | - | - | - | - | - | - | -",
        "no offset found | drop, request 0M | - | - | - | - | - | - | -",
        "file begins | refuse internal | from 16M | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal",
        "other file begins | refuse internal | refuse remote-changed | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal",
        "huge file begins | refuse internal | refuse too-large | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal | refuse internal",
        "bytes | refuse internal | begin | append | append | refuse internal | refuse permission-denied | refuse internal | refuse internal",
        "too many bytes | refuse internal | begin | refuse remote-changed | refuse remote-changed | refuse internal | refuse permission-denied | refuse internal | refuse internal",
        "bytes ended, brief | - | - | fail truncated | complete | - | - | - | -",
        "bytes ended, long | - | - | fail truncated | confirm | - | - | - | -",
        "bytes ended, paused | - | - | fail truncated | confirm | - | - | - | -",
        "ended: well | - | begin empty | end bytes | end bytes | complete | fail permission-denied | - | -",
        "ended: other time | - | drop, request 0M | end bytes | end bytes | drop, request 0M | fail permission-denied | - | -",
        "ended: not found | fail not-found | fail not-found | fail not-found | fail not-found | complete | fail connect | - | -",
        "ended: truncated | fail truncated | fail truncated | fail truncated | end bytes | fail truncated | fail connect | - | -",
        "ended: stalled | fail stalled | fail stalled | fail stalled | end bytes | fail stalled | fail connect | - | -",
        "ended: changed | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | fail connect | - | -",
        "ended: directory | fail connect | check directory | fail connect | fail connect | fail connect | fail connect | - | -",
        "ended: cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | - | -",
        "ended: too large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | - | -",
        "failed | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | -",
        "failed: changed | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | -",
        "disk failed | fail disk-full | abort disk-full | abort disk-full | abort disk-full | abort disk-full | abort disk-full | fail disk-full | -",
    ]

    // MARK: Situations

    private static let situations: [(String, Machine.Configuration, PartContents)] = [
        ("new", configuration(), part(0)),
        ("resumed", configuration(), part()),
        ("new with mirrors", configuration(hasMirrors: true), part(0)),
        ("resumed with mirrors", configuration(hasMirrors: true), part()),
        ("little with mirrors", configuration(hasMirrors: true), part(1_000)),
        ("of a mirror", configuration(hasMirrors: true), digested(part(half, origin: "http://m/f"))),
        ("mismatched", configuration(hasMirrors: true, hasMismatch: true), digested(part())),
        ("wrong", configuration(hasMirrors: true, hasMismatch: true, isWrong: true), part(0)),
        ("wrong alone", configuration(hasMismatch: true, isWrong: true), part(0)),
    ]

    private static func digested(_ part: PartContents) -> PartContents {
        var part = part
        part.hasDigest = true
        return part
    }

    @Test("the beginning and every failure, in every situation of the part and its mirrors")
    func situations() {
        let codes: [TransferError.Code] = [
            .cannotConnect, .notFound, .truncated, .permissionDenied, .remoteChanged, .cancelled,
        ]
        var rows = [["begin"], ["prepared"]]
        rows += codes.map { [$0.rawValue] } + [["too large, local"], ["directory, listed"], ["directory, not listed"]]
        for (_, configuration, part) in Self.situations {
            var machine = Machine(configuration)
            rows[0].append(Self.words(machine.begin(part)))
            rows[1].append(Self.words(machine.prepared(part)))
            _ = machine.offsetFound(part.front)
            for (index, code) in codes.enumerated() {
                var machine = machine
                rows[index + 2].append(Self.words(machine.stepEnded(Self.error(code), part, at: 0)))
            }
            var refused = machine
            let local = RemoteEnding(error: TransferError(.tooLarge, "r"), isLocal: true)
            rows[codes.count + 2].append(Self.words(refused.stepEnded(local, part, at: 0)))
            for (index, ending) in [RemoteEnding(), Self.error(.notFound)].enumerated() {
                var machine = machine
                _ = machine.stepEnded(Self.directory, part, at: 0)
                rows[codes.count + 3 + index].append(Self.words(machine.stepEnded(ending, part, at: 0)))
            }
        }
        compare(rows.map { $0.joined(separator: " | ") }, Self.expectedSituations)
    }

    /// The columns are the situations, in their order.
    private static let expectedSituations: [String] = [
        "begin | find offset of nothing | find offset of 32M, timed | find offset of nothing | learn digest | learn digest | learn digest | learn digest | mirrors checksum-mismatch | find offset of nothing",
        "prepared | find offset of nothing | find offset of 32M, timed | find offset of nothing | find offset of 32M, timed | find offset of 32M, timed | find offset of 32M | find offset of 32M, timed | find offset of nothing | find offset of nothing",
        "connect | fail connect | fail connect | mirrors connect | fail connect | mirrors connect | mirrors connect | fail connect | mirrors connect | fail connect",
        "not-found | fail not-found | fail not-found | mirrors not-found | mirrors not-found | mirrors not-found | mirrors not-found | mirrors not-found | mirrors not-found | fail not-found",
        "truncated | fail truncated | fail truncated | mirrors truncated | fail truncated | mirrors truncated | mirrors truncated | fail truncated | mirrors truncated | fail truncated",
        "permission-denied | fail permission-denied | fail permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | fail permission-denied",
        "remote-changed | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M | drop, request 0M",
        "cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled",
        "too large, local | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large | fail too-large",
        "directory, listed | fail permission-denied | fail permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | mirrors permission-denied | fail permission-denied",
        "directory, not listed | fail connect | fail connect | mirrors connect | fail connect | mirrors connect | mirrors connect | fail connect | mirrors connect | fail connect",
    ]

    // MARK: Single rules

    @Test("a file that keeps changing is requested anew twice")
    func restartLimit() {
        var machine = Machine(Self.configuration())
        _ = machine.begin(Self.part(0))
        let actions = (0..<3).map { _ in machine.failed(TransferError(.remoteChanged, "r")) }
        #expect(actions.map(Self.words) == ["drop, request 0M", "drop, request 0M", "fail remote-changed"])
    }

    @Test("a part of a mirror is continued whatever the server's time, and marked")
    func mirroredPart() throws {
        let part = Self.digested(Self.part(Self.half, origin: "http://m/f"))
        var machine = Machine(Self.configuration(hasMirrors: true))
        let begin = Self.words(machine.begin(part))
        _ = machine.prepared(part)
        _ = machine.offsetFound(Self.half)
        #expect(begin == "learn digest")
        #expect(try machine.fileBegins(RemoteFacts(size: Self.size, time: 5), part).isJoining)
        #expect(throws: TransferError.self) { try machine.fileBegins(RemoteFacts(size: 7), part) }
    }

    @Test("a file without a size or a time needs no second look")
    func nothingToConfirm() {
        for facts in [RemoteFacts(), RemoteFacts(size: 5)] {
            var machine = Machine(Self.configuration())
            _ = machine.begin(Self.part(0))
            _ = machine.offsetFound(0)
            if let plan = try? machine.fileBegins(facts, Self.part(0)) { machine.fileBegan(plan) }
            let action = Self.words(machine.bytesEnded(RemoteEnding(duration: 9_000), at: 5))
            #expect(action == "complete")
        }
    }

    @Test("the limit of a file's size counts where the server tells none")
    func maximumSize() {
        let machine = Machine(Self.configuration())
        #expect(machine.bytesAppended(upTo: 64 << 20) == nil)
        #expect(machine.bytesAppended(upTo: 64 << 20 + 1)?.code == .tooLarge)
    }
}

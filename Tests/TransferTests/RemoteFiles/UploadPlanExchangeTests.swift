import Testing

@testable import Transfer

@Suite("The steps of an upload to a file server")
struct UploadPlanExchangeTests {
    private static let error = TransferError(.truncated, "r")
    private static let steps: [UploadPlan.Step] = [
        .measureRest, .compareRemains(from: 5), .storeAside(from: 0), .storeAside(from: 5), .measureWhole, .rename,
        .replace, .storeDirectly, .cleanUp(error), .makeDirectories,
    ]

    private func steps(_ url: String, mayHaveRemains: Bool) throws -> [String] {
        let path = try RemoteFile(url).path
        let place = UploadPlan.Step.Place(
            path: path, temporary: path.temporary(token: "t"), length: 9, mayHaveRemains: mayHaveRemains)
        return Self.steps.map { step in
            guard let remote = step.remoteStep(place) else { return "-" }
            let work =
                switch remote.work {
                case .fetch(let offset): "fetch \(offset)"
                case .look: "look"
                case .store(let length, let offset): "store \(length ?? -1) from \(offset)"
                case .command: "command"
                }
            let commands = [remote.commandsBefore, remote.commandsAfter].map { lines in
                lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", ")
            }
            return "\(work) \(remote.path?.text ?? "-")\(remote.isCleanUp ? " clean-up" : "")"
                + " [\(commands[0])] [\(commands[1])]"
        }
    }

    @Test("the commands of each step over FTP")
    func ftp() throws {
        #expect(
            try steps("ftp://h/f", mayHaveRemains: true) == [
                "look .f.dld-t.tmp [] []", "fetch 5 .f.dld-t.tmp [] []",
                "store 9 from 0 .f.dld-t.tmp [*DELE .f.dld-t.tmp] "
                    + "[*SIZE .f.dld-t.tmp, RNFR .f.dld-t.tmp, RNTO f]",
                "store 9 from 5 .f.dld-t.tmp [] []", "look .f.dld-t.tmp [] []",
                "command - [RNFR .f.dld-t.tmp, RNTO f] []",
                "command - [*DELE f, RNFR .f.dld-t.tmp, RNTO f] []",
                "store 9 from 0 f [*DELE .f.dld-t.tmp] [*SIZE f]", "command - clean-up [*DELE .f.dld-t.tmp] []",
                "command - [] []",
            ])
    }

    @Test("the commands of each step over SFTP")
    func sftp() throws {
        #expect(
            try steps("sftp://h/f", mayHaveRemains: false) == [
                "look /.f.dld-t.tmp [] []", "fetch 5 /.f.dld-t.tmp [] []",
                "store 9 from 0 /.f.dld-t.tmp [] [rename \"/.f.dld-t.tmp\" \"/f\"]",
                "store 9 from 5 /.f.dld-t.tmp [] []", "look /.f.dld-t.tmp [] []",
                "command - [rename \"/.f.dld-t.tmp\" \"/f\"] []",
                "command - [rm \"/f\", rename \"/.f.dld-t.tmp\" \"/f\"] []",
                "store 9 from 0 /f [*rm \"/.f.dld-t.tmp\"] []", "command - clean-up [*rm \"/.f.dld-t.tmp\"] []",
                "command - [] []",
            ])
    }

    private static let endings: [(String, RemoteEnding)] = [
        ("well", RemoteEnding(facts: RemoteFacts(size: 7), bodyBegun: true)),
        ("not found", RemoteEnding(error: TransferError(.notFound, "r"))),
        ("command refused", RemoteEnding(error: error, isCommandRefused: true)),
        ("name refused", RemoteEnding(error: error, isNameRefused: true)),
        ("failed", RemoteEnding(error: error)),
        ("failed, begun", RemoteEnding(error: error, bodyBegun: true)),
    ]

    private static func words(_ event: UploadPlan.Event) -> String {
        switch event {
        case .done: "done"
        case .measured(let size): "measured \(size.map { "\($0)" } ?? "none")"
        case .compared(let size): "compared \(size.map { "\($0)" } ?? "none")"
        case .commandRefused: "command"
        case .nameRefused: "name"
        case .failed(let error, let begun): "\(error.code.rawValue)\(begun ? " begun" : "")"
        }
    }

    @Test("every end of every step as an event of the plan")
    func events() {
        let found = Self.endings.flatMap { name, ending in
            [(true, UploadPlan.Event.Comparison.equal(upTo: 6)), (false, .different)].map { isSentWhole, comparison in
                let cells = Self.steps.map {
                    Self.words(UploadPlan.Event(ending, of: $0, isSentWhole: isSentWhole, comparison: comparison))
                }
                return (["\(name)\(isSentWhole ? "" : ", different, not whole")"] + cells).joined(separator: " | ")
            }
        }
        for (row, expected) in zip(found, Self.expectedEvents) { #expect(row == expected) }
        #expect(found.count == Self.expectedEvents.count)
        if found != Self.expectedEvents { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    /// The columns are the steps, in their order.
    private static let expectedEvents: [String] = [
        "well | measured 7 | compared 6 | done | done | measured 7 | done | done | done | done | done",
        "well, different, not whole | measured 7 | compared none | truncated begun | truncated begun | measured 7 | done | done | truncated begun | done | done",
        "not found | measured none | not-found begun | name | not-found | measured none | not-found begun | not-found begun | not-found | not-found begun | not-found begun",
        "not found, different, not whole | measured none | compared none | name | not-found | measured none | not-found begun | not-found begun | not-found | not-found begun | not-found begun",
        "command refused | command | command | command | command | command | command | command | command | command | command",
        "command refused, different, not whole | command | compared none | command | command | command | command | command | command | command | command",
        "name refused | name | name | name | name | name | name | name | name | name | name",
        "name refused, different, not whole | name | compared none | name | name | name | name | name | name | name | name",
        "failed | truncated begun | truncated begun | truncated | truncated | truncated begun | truncated begun | truncated begun | truncated | truncated begun | truncated begun",
        "failed, different, not whole | truncated begun | compared none | truncated | truncated | truncated begun | truncated begun | truncated begun | truncated | truncated begun | truncated begun",
        "failed, begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun",
        "failed, begun, different, not whole | truncated begun | compared none | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun | truncated begun",
    ]
}

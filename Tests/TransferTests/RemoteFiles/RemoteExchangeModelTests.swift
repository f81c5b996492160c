import TestSupport
import Testing

@testable import Transfer

/// Exchanges with file servers as values, under random orders of events.
@Suite("An exchange with a file server under every order of events")
struct RemoteExchangeModelTests {
    private static func draw<Element>(_ choices: [Element], _ generator: inout SeededGenerator) -> Element {
        choices[Int.random(in: 0..<choices.count, using: &generator)]
    }

    private static func steps(_ generator: inout SeededGenerator) -> [RemoteStep] {
        let works: [RemoteStep.Work] = [
            .fetch(from: 0), .fetch(from: 100), .look, .store(length: 9, from: 0), .command,
        ]
        return (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            RemoteStep(work: draw(works, &generator), isCleanUp: draw([false, false, false, true], &generator))
        }
    }

    private static func server(_ generator: inout SeededGenerator) -> ModelFileServer {
        let types = HostKey.types.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator))
        return ModelFileServer(
            keyTypes: Array(types), trustedType: draw([types.first, types.last, nil], &generator),
            demandsTLS: .random(using: &generator))
    }

    @Test("each step ends once, each pause has an owner, and no byte passes during one", arguments: 0..<400)
    func disorder(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        let url = Self.draw(["ftp://h/f", "ftps://h/f", "sftp://h/f"], &generator)
        var model = try RemoteExchangeModel(
            url, server: Self.server(&generator), steps: Self.steps(&generator))
        var trail: [RemoteExchangeModel.Event] = []
        for count in 0..<400 where !model.isOver {
            var events = model.possibleEvents
            // Cancellation and failures are rarer than progress; at the end, only progress is left.
            let isCalm = count > 200 || Int.random(in: 0..<8, using: &generator) > 0
            if isCalm {
                let others = events.filter { ![.cancel, .suspend, .notResolved, .end(.failed)].contains($0) }
                if others.count > 1 { events = others }
            }
            let event = Self.draw(events, &generator)
            trail.append(event)
            model.happen(event, after: .random(in: 1...200, using: &generator))
            if let violation = model.violation {
                Issue.record("\(violation) after \(trail.suffix(12))")
                return
            }
        }
        #expect(model.isOver, "no end after \(trail.suffix(12))")
    }

    @Test("a server with the trusted key among others is reached, whichever it shows first")
    func trustedKey() throws {
        for first in HostKey.types {
            for trusted in HostKey.types {
                var model = try RemoteExchangeModel(
                    "sftp://h/f", server: ModelFileServer(keyTypes: [first, trusted], trustedType: trusted),
                    steps: [RemoteStep(work: .look)])
                model.happen(.begin)
                for _ in 0..<20 where !model.isOver {
                    let events = model.possibleEvents
                    if let event = events.first(where: { if case .resolved = $0 { true } else { $0 == .hostKey } }) {
                        model.happen(event)
                    } else {
                        model.happen(.end(.well))
                    }
                    #expect(model.violation == nil)
                }
                #expect(model.endings.count == 1 && model.endings[0].error == nil, "\(first) before \(trusted)")
            }
        }
    }

    @Test("a server that demands TLS gets it with the second connection")
    func demandedTLS() throws {
        var model = try RemoteExchangeModel(
            "ftp://h/f", server: ModelFileServer(demandsTLS: true),
            steps: [RemoteStep(work: .look), RemoteStep(work: .fetch(from: 0))])
        for event: RemoteExchangeModel.Event in [.begin, .resolved(1), .end(.refused), .resolved(2), .end(.well)] {
            model.happen(event)
        }
        for event: RemoteExchangeModel.Event in [.begin, .resolved(3), .bytes(.accepts), .end(.well)] {
            model.happen(event)
        }
        #expect(model.isOver && model.violation == nil)
        #expect(model.connections == [2, 1])
        #expect(model.endings.map(\.error) == [nil, nil])
    }
}

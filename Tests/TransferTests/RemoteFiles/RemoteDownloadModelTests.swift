import TestSupport
import Testing

@testable import Transfer

/// Downloads from file servers as values, under random orders of events.
@Suite("A download from a file server under every order of events")
struct RemoteDownloadModelTests {
    private static func draw<Element>(_ choices: [Element], _ generator: inout SeededGenerator) -> Element {
        choices[Int.random(in: 0..<choices.count, using: &generator)]
    }

    private func run(
        _ model: inout RemoteDownloadModel, _ generator: inout SeededGenerator, failures: [RemoteDownloadModel.Event],
        mishap: (inout RemoteDownloadModel, inout SeededGenerator) -> Void = { _, _ in }
    ) {
        model.start()
        var trail: [RemoteDownloadModel.Event] = []
        for _ in 0..<2_000 where model.result == nil {
            mishap(&model, &generator)
            var events = model.possibleEvents.filter {
                ![.breakOff, .diskFailure, .cancel].contains($0) || failures.contains($0)
            }
            if Int.random(in: 0..<10, using: &generator) > 0 { events.removeAll { failures.contains($0) } }
            let event = Self.draw(events, &generator)
            trail.append(event)
            model.happen(event)
            if let violation = model.violation {
                Issue.record("\(violation) after \(trail.suffix(12))")
                return
            }
        }
        if model.result == nil { Issue.record("no end after \(trail.suffix(12))") }
    }

    private static func file(_ generator: inout SeededGenerator) -> RemoteDownloadModel.File {
        RemoteDownloadModel.File(
            size: draw([0, 1, 9_000, 300_000, 1_500_000], &generator),
            tellsSize: draw([true, true, false], &generator),
            tellsTime: draw([true, true, false], &generator))
    }

    private static func present(of file: RemoteDownloadModel.File, _ generator: inout SeededGenerator) -> Int64 {
        file.size == 0 ? 0 : draw([0, Int64.random(in: 1...file.size, using: &generator)], &generator)
    }

    @Test(
        "a file that stays as it is is completed, and no byte dropped where size and time are known",
        arguments: 0..<200)
    func honest(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let file = Self.file(&generator)
        var model = RemoteDownloadModel(file, present: Self.present(of: file, &generator), hasMirrors: false)
        run(&model, &generator, failures: [])
        #expect(model.result == .finished)
        #expect(model.part.front == file.size)
        if file.tellsSize, file.tellsTime { #expect(model.restarts == 0) }
    }

    @Test("bytes of two versions never meet, whatever fails and whenever the file changes", arguments: 0..<600)
    func changing(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(1_000 + seed))
        let file = Self.file(&generator)
        var model = RemoteDownloadModel(
            file, present: Self.present(of: file, &generator), hasMirrors: .random(using: &generator))
        if .random(using: &generator) { model.file.version += 1 }
        run(&model, &generator, failures: [.breakOff, .diskFailure, .cancel]) { model, generator in
            guard Int.random(in: 0..<10, using: &generator) == 0 else { return }
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1: model.file.version += 1
            case 2:
                model.file.version += 1
                model.file.size = Self.draw([0, 9_000, 250_000, 1_600_000], &generator)
            case 3: model.file.kind = .missing
            case 4: model.file.kind = .directory
            default: model.file.kind = .file
            }
        }
        #expect(model.steps <= 3 * (RemoteDownloadStateMachine.restartLimit + 2))
    }
}

import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// The outcome of a download from a misbehaving server.
enum Verdict: Sendable, Equatable, CustomStringConvertible {
    case right
    case failed(TransferError.Code)
    /// A wrong file was published, a right one failed without cause, or something was left behind.
    case wrong(String)
    case stuck

    var description: String {
        switch self {
        case .right: "right"
        case .failed(let code): "failed (\(code.rawValue))"
        case .wrong(let words): "WRONG: \(words)"
        case .stuck: "STUCK"
        }
    }
}

/// A semaphore that limits concurrent trials: a test of time limits must not be slowed by other tests.
actor Turnstile {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) { free = count }

    func enter() async {
        if free > 0 { return free -= 1 }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}

/// A download under one lie.
struct MisbehavingServerTrial: Sendable, CustomStringConvertible {
    let lie: Lie
    let segments: Segments
    let life: Lie.Life

    static let turnstile = Turnstile(4)
    static let timeout = Duration.seconds(60)
    /// The outcomes of all trials in this process.
    static let tally = Mutex<[String: Int]>([:])

    var description: String {
        "\(lie.testDescription), \(segments.isAutomatic ? "automatic" : "\(segments.most)"), \(life.rawValue)"
    }

    static func all(of lie: Lie) -> [MisbehavingServerTrial] {
        lie.lives.flatMap { life in
            lie.connections.map { MisbehavingServerTrial(lie: lie, segments: $0, life: life) }
        }
    }

    private struct NoHalf: Error, CustomStringConvertible {
        let description: String
    }

    func run() async -> Verdict {
        await Self.turnstile.enter()
        let begin = ContinuousClock.now
        let verdict: Verdict
        do {
            verdict = try await evaluate()
        } catch {
            verdict = .wrong("\(error)")
        }
        await Self.turnstile.leave()
        let key =
            switch verdict {
            case .right: "right"
            case .failed: "failed"
            case .wrong: "silent"
            case .stuck: "stuck"
            }
        let tally = Self.tally.withLock { tally in
            tally[key, default: 0] += 1
            return tally
        }
        if getenv("LIAR_VERBOSE") != nil {
            print("LIAR \(self): \(verdict) after \(begin.duration(to: .now)) of \(tally)")
        }
        return verdict
    }

    private func configuration() -> SessionConfiguration {
        .test {
            $0.stallTimeout = 1_000
            $0.connectTimeout = 5_000
            $0.loops = 1
        }
    }

    private func request(_ liar: MisbehavingServer) -> TransferRequest {
        var request = TransferRequest(url: liar.url(lie.path))
        request.segments = segments
        request.confirmationDelay = 10
        return request
    }

    private func download(
        _ liar: MisbehavingServer, in place: Place, by manager: SessionManager, _ resumeData: ResumeData? = nil
    ) -> DownloadRequest {
        if let digest = lie.digest {
            return manager.download(request(liar), to: place.target(digest: digest), resumingWith: resumeData)
        }
        if let resumeData { return manager.download(resumingWith: resumeData, request: request(liar)) }
        return manager.download(request(liar), to: .path(place.temporary.file("file")))
    }

    /// Runs an earlier life, in which the server was honest until about half of the file was received.
    private func earlier(_ liar: MisbehavingServer, in place: Place) async throws -> ResumeData {
        liar.turn(bodyBytes: lie.earlierBytes)
        let manager = try SessionManager(configuration: configuration())
        let restarts = Notes<String>()
        manager.delegate.downloadTaskDidRestart = { _, reason in restarts.add(reason) }
        let outcome = await download(liar, in: place, by: manager).outcome
        guard let resumeData = outcome.resumeData.flatMap({ ResumeData(bytes: $0.bytes) }) else {
            throw NoHalf(description: "no resume data: \(outcome.result), restarts \(restarts.all)")
        }
        // A server that counts connections must not count those of this life in the next one.
        manager.session.invalidateAndCancel()
        try await eventually(that: "the earlier connections are closed") { liar.openConnections == 0 }
        return resumeData
    }

    private func evaluate() async throws -> Verdict {
        let place = try Place()
        let liar = try MisbehavingServer(ports: lie.ports, answering: lie.before)
        defer { liar.stop() }
        let resumeData = life == .resumed ? try await earlier(liar, in: place) : nil
        let before = liar.requests.count
        liar.turn(to: lie.answering(liar))
        let verdict = try await evaluate(liar, in: place, resumeData)
        guard verdict != .stuck else { return verdict }
        do {
            try await eventually(that: "all is closed", within: .seconds(20)) {
                // The remaining descriptor is that of the test's own directory.
                openDescriptors(beneath: place.temporary.path) == 1 && liar.openConnections == 0
            }
        } catch {
            return .wrong("left open: \(openDescriptors(beneath: place.temporary.path)), \(liar.openConnections)")
        }
        let requests = liar.requests.count - before
        return requests > lie.mostRequests ? .wrong("\(requests) requests") : verdict
    }

    private func evaluate(_ liar: MisbehavingServer, in place: Place, _ resumeData: ResumeData?) async throws -> Verdict
    {
        let manager = try SessionManager(configuration: configuration())
        manager.intercept(
            with: DefaultRetrier(policy: RetryPolicy(attempts: 8, baseDelay: 10, maximumDelay: 500)))
        let request = download(liar, in: place, by: manager, resumeData)
        let isStuck = Atomic<Bool>(false)
        let watch = Task {
            try await Task.sleep(for: Self.timeout)
            isStuck.store(true, ordering: .sequentiallyConsistent)
            request.cancel(keepingBytes: false)
        }
        let outcome = await request.outcome
        watch.cancel()
        if isStuck.load(ordering: .sequentiallyConsistent) { return .stuck }
        return evaluate(outcome, in: place)
    }

    private func evaluate(_ outcome: DownloadRequest.Response, in place: Place) -> Verdict {
        switch outcome.result {
        case .success(let file):
            guard place.names == ["file"] else { return .wrong("there are \(place.names.sorted())") }
            let differences = lie.versions.map { $0.difference(fromFileAt: file.path) }
            guard differences.contains(nil) else {
                return .wrong("published: " + differences.compactMap(\.self).joined(separator: ", "))
            }
            return .right
        case .failure(let error):
            // The owner of a target knows its part file, which may stay.
            var stays = Set(lie.digest == nil ? [] : [Place.partName])
            if let path = outcome.resumeData?.partPath, let name = path.split(separator: "/").last {
                stays.insert(String(name))
                guard place.names.contains(String(name)) else { return .wrong("resume data without a part") }
            }
            guard place.names.isSubset(of: stays) else { return .wrong("there are \(place.names.sorted())") }
            return lie.failures.contains(error.code) ? .failed(error.code) : .wrong("\(error)")
        }
    }
}

/// Runs every life and number of connections of `lie`, and expects no wrong and no stuck trial.
func withstand(_ lie: Lie, sourceLocation: SourceLocation = #_sourceLocation) async {
    // Restricts a run to one lie for debugging.
    if let only = getenv("LIAR_ONLY"), !lie.testDescription.contains(String(cString: only)) { return }
    let verdicts = await withTaskGroup(of: (MisbehavingServerTrial, Verdict).self) { group in
        for trial in MisbehavingServerTrial.all(of: lie) { group.addTask { (trial, await trial.run()) } }
        return await group.reduce(into: []) { $0.append($1) }
    }
    for (trial, verdict) in verdicts {
        switch verdict {
        case .right, .failed: break
        case .wrong, .stuck: Issue.record("\(trial): \(verdict)", sourceLocation: sourceLocation)
        }
    }
    #expect(verdicts.count == lie.lives.count * lie.connections.count, sourceLocation: sourceLocation)
}

import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

/// Eight tasks that concurrently start, suspend, resume, cancel and retry requests of every kind at random.
///
/// The test runs for three seconds, or for `DLD_STRESS_SECONDS` seconds: a minute under the sanitizers.
@Suite("Under stress", .serialized)
struct StressTests {
    /// A retrier that retries after a few milliseconds, at most three times.
    private struct Impatient: RequestRetrier {
        func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
            request.retryCount < 3 ? .retry(after: Int64.random(in: 0...5)) : .doNotRetry
        }
    }

    private final class Count: Sendable {
        private let number = Atomic<Int>(0)
        var value: Int { number.load(ordering: .relaxed) }
        func next() -> Int { number.wrappingAdd(1, ordering: .relaxed).newValue }
    }

    private static var seconds: Double {
        getenv("DLD_STRESS_SECONDS").flatMap { Double(String(cString: $0)) } ?? 3
    }

    @Test("every request's handlers run exactly once, whatever is done to it and whenever", .timeLimit(.minutes(10)))
    func handlersRunOnce() async throws {
        let place = try Place()
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer([
            "/f": [.serve(resource)], "/cut": [.serveThenCut(resource, after: 70_000, .reset)],
            "/503": [.status(503), .status(200, body: "abc")], "/302": [.redirect("/f")],
            "/401": [.status(401, headers: ["WWW-Authenticate: Basic realm=\"x\""])], "/in": [.status(201)],
            "/drip": [.drip(resource, bytesPerSecond: 2_000_000)],
        ])
        let manager = try SessionManager(configuration: .test())
        manager.retrier = Impatient()
        let made = Count()
        let handled = Notes<Int>()
        let end = ContinuousClock.now + .seconds(Self.seconds)
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<8 {
                group.addTask {
                    var round = 0
                    while ContinuousClock.now < end {
                        round += 1
                        let number = made.next()
                        let request = Self.request(number, lane, round, manager, server, place, resource) {
                            handled.add(number)
                        }
                        await Self.torment(request)
                        await request.completion()
                    }
                }
            }
        }
        #expect(handled.all.sorted() == Array(0..<made.value).map { $0 + 1 })
        #expect(manager.delegate.requestCount == 0)
        manager.session.finishTasksAndInvalidate()
    }

    private static func request(
        _ number: Int, _ lane: Int, _ round: Int, _ manager: SessionManager, _ server: ScriptedServer, _ place: Place,
        _ resource: Resource, _ handler: @escaping @Sendable () -> Void
    ) -> Request {
        let path = ["/f", "/cut", "/503", "/302", "/401", "/drip"].randomElement() ?? "/f"
        switch number % 4 {
        case 0:
            // The names are unique to the lane.
            let name = "\(lane)-\(round)"
            let target = place.target(name, owner: "test-\(name)", part: ".\(name).part", conflict: .overwrite)
            return manager.download(server.url(path), to: target).response(queue: .inline) { _ in handler() }
        case 1:
            let request = TransferRequest(url: server.url("/in"), method: .put)
            return manager.upload(.data(resource.bytes), with: request).response(queue: .inline) { _ in handler() }
        case 2:
            let body = BodyStream(length: nil) {
                AsyncStream<[UInt8]> { continuation in
                    for _ in 0..<20 { continuation.yield([UInt8](repeating: 7, count: 5_000)) }
                    continuation.finish()
                }
            }
            let request = TransferRequest(url: server.url("/in"), method: .post)
            return manager.upload(.stream(body), with: request).response(queue: .shared) { _ in handler() }
        default:
            return manager.request(server.url(path)).authenticate(user: "u", password: "p").validate()
                .response(queue: .shared) { _ in handler() }
        }
    }

    private static func torment(_ request: Request) async {
        for _ in 0..<Int.random(in: 0...6) {
            switch Int.random(in: 0...9) {
            case 0...2: request.suspend()
            case 3...5: request.resume()
            case 6: request.cancel()
            default: break
            }
            if Bool.random() {
                await Task.yield()
            } else {
                try? await Task.sleep(for: .microseconds(Int.random(in: 0...3000)))
            }
        }
        // In any case the request finally resumes.
        request.resume()
    }
}

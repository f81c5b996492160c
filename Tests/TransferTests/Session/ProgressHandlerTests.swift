import Dispatch
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Handlers of progress")
struct ProgressHandlerTests {
    private let manager: SessionManager
    private let place: TemporaryDirectory

    init() throws {
        manager = try SessionManager(configuration: .test())
        place = try TemporaryDirectory()
    }

    @Test("the final counts come before the awaited value, every time", arguments: [false, true])
    func finalCountsBeforeValue(onDispatchQueue: Bool) async throws {
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let queue = onDispatchQueue ? HandlerQueue.dispatch(.init(label: "progress")) : nil
        for number in 0..<50 {
            let seen = Notes<TransferProgress.Snapshot>()
            let request = manager.download(server.url("/f"), to: place.file("\(number)"))
                .onProgress(queue: queue) { seen.add($0) }
            _ = try await request.value
            let last = try #require(seen.all.last)
            #expect(last.completedBytes == resource.size && last == request.progress.snapshot)
        }
    }

    @Test("the final counts come before the handlers of the response, also those on other queues")
    func finalCountsBeforeHandlers() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: String(repeating: "x", count: 5000))]])
        for queue in [HandlerQueue.inline, .shared, .dispatch(.init(label: "handlers"))] {
            let order = Notes<String>()
            await withCheckedContinuation { done in
                manager.request(server.url("/f"))
                    .onProgress(queue: .dispatch(.init(label: "progress"))) { order.add("\($0.completedBytes)") }
                    .response(queue: queue) { _ in
                        order.add("response")
                        done.resume()
                    }
            }
            #expect(order.all.suffix(2) == ["5000", "response"])
        }
    }

    @Test("a failed or cancelled request reports its last counts too")
    func failures() async throws {
        let resource = Resource(size: 400_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 100_000)]])
        let seen = Notes<Int64>()
        let request = manager.download(server.url("/f"), to: place.file("f")).onProgress { seen.add($0.completedBytes) }
        let response = await request.outcome
        #expect(response.error != nil && seen.all.last == request.progress.completedBytes)
        let hanging = manager.request(server.url("/f")).onProgress { seen.add($0.completedBytes) }
        hanging.cancel()
        #expect(await hanging.outcome.error?.code == .cancelled)
    }

    @Test("a handler added after the end is called once, with the final counts")
    func lateHandler() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let request = manager.request(server.url("/f"))
        _ = try await request.value
        let seen = Notes<Int64>()
        request.onProgress(queue: .inline) { seen.add($0.completedBytes) }
        #expect(seen.all == [3])
    }

    @Test("calls of one handler do not overlap")
    func noOverlap() async throws {
        let resource = Resource(size: 3 << 20)
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 8 << 20)]])
        let running = Atomic<Int>(0)
        let overlaps = Atomic<Int>(0)
        _ = try await manager.download(server.url("/f"), to: place.file("f")).onProgress { _ in
            if running.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue > 1 {
                overlaps.wrappingAdd(1, ordering: .sequentiallyConsistent)
            }
            for _ in 0..<20_000 { _ = running.load(ordering: .sequentiallyConsistent) }
            running.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        }.value
        let count = overlaps.load(ordering: .sequentiallyConsistent)
        #expect(count == 0)
    }

    @Test("an upload's progress is the response's, and the sent bytes stand beside it")
    func uploadCounts() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "thank you")]])
        let (sent, received) = (Notes<Int64>(), Notes<Int64>())
        let request = manager.upload(.data([UInt8](repeating: 7, count: 70_000)), with: server.url("/f"))
            .onUploadProgress { sent.add($0.completedBytes) }
            .onProgress { received.add($0.completedBytes) }
        #expect(try await request.string == "thank you")
        let delegate = try #require(request.delegate as? UploadTaskDelegate)
        #expect(sent.all.last == 70_000 && received.all.last == 9)
        #expect(delegate.bytesReceived == 9 && delegate.uploadProgress.completedBytes == 70_000)
        #expect(request.uploadProgress.totalBytes == 70_000 && request.progress.totalBytes == 9)
    }

    @Test("a request whose response is empty has received nothing, however much it sent")
    func emptyResponse() async throws {
        let server = try ScriptedServer(["/f": [.status(204)]])
        let request = manager.request(server.url("/f"), method: .post, parameters: ["a": "b"])
        _ = await request.outcome
        #expect((request.delegate as? DataTaskDelegate)?.bytesReceived == 0)
    }
}

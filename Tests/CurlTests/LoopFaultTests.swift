import CCurl
import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("What the loop does where libcurl or epoll fails")
struct LoopFaultTests {
    @Test("a fault of all transfers ends each exchange and stream with an error, and new ones begin")
    func faultOfAll() async throws {
        let server = try ScriptedServer(["/hang": [.hang], "/f": [.serve(Resource(size: 1000))]])
        let loop = try TransferLoop(name: "test-fault")
        defer { loop.stop() }
        let endings = Mutex<[String]>([])
        let ended = try WakeUp(counting: true)
        loop.post { core in
            for _ in 0..<2 {
                core.begin(
                    server.url("/hang"),
                    RecordingHandler { record in
                        endings.withLock { $0.append(record.ending) }
                        ended.signal()
                    })
            }
        }
        try await eventually(that: "the server has the requests") { server.requests(for: "/hang").count == 2 }
        loop.post { core in core.record(CURLM_OUT_OF_MEMORY) }
        await waiting {
            ended.wait()
            ended.wait()
        }
        #expect(endings.withLock { $0 } == ["failed 99", "failed 99"])
        #expect(await loop.run { core in core.exchangeCount } == 0)
        #expect(await loop.fetch(server.url("/f")).ending == "finished")
    }

    @Test("a code that is no failure ends nothing")
    func noFault() async throws {
        let loop = try TransferLoop(name: "test-no-fault")
        defer { loop.stop() }
        let isFault = await loop.run { core in
            core.record(CURLM_OK)
            core.record(CURLM_CALL_MULTI_PERFORM)
            return core.fault != nil
        }
        #expect(!isFault)
    }

    @Test("a multi handle's code is not taken for the transfer's with the same number")
    func codes() {
        // CURLM_OUT_OF_MEMORY has the same number as CURLE_URL_MALFORMAT.
        #expect(CurlError(CURLM_OUT_OF_MEMORY).code.rawValue == CURLE_UNRECOVERABLE_POLL.rawValue)
        #expect(CurlError(CURLM_OUT_OF_MEMORY).message == String(cString: curl_multi_strerror(CURLM_OUT_OF_MEMORY)))
    }

    @Test("an exchange that is cancelled within its own callback leaves libcurl after it, and its handler hears once")
    func cancelWithinCallback() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 4_000_000)), .serve(Resource(size: 1000))]])
        let loop = try TransferLoop(name: "test-within")
        defer { loop.stop() }
        let (log, left) = await withCheckedContinuation { continuation in
            loop.post { core in
                let handler = CancellingHandler(core) { log in
                    // Runs after the turn in which the exchange ended, plus 50 ms for any further libcurl callback.
                    _ = core.after(milliseconds: 50) {
                        continuation.resume(returning: (log.events, core.leftBehind.count))
                    }
                }
                _ = try? core.start(handler: handler) { (exchange: Exchange) throws(CurlError) in
                    try exchange.easy.set(.url, to: server.url("/f"))
                    try exchange.easy.set(.proxy, to: "")
                }
            }
        }
        #expect(log == ["body", "ended"])
        #expect(left == 0)
        #expect(await loop.fetch(server.url("/f")).ending == "finished")
    }

    @Test("a descriptor that epoll refuses is looked at nevertheless, and watched once epoll takes it")
    func refusedByEpoll() async throws {
        let loop = try TransferLoop(name: "test-refused")
        defer { loop.stop() }
        // epoll accepts no regular file (EPERM).
        let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        let (looks, marks) = await withCheckedContinuation { continuation in
            loop.post { core in
                let watcher = CountingWatcher()
                watcher.onLook = { count in
                    guard count == 3 else { return }
                    // From now on epoll accepts the descriptor. It has nothing to read, so that no further call
                    // follows.
                    let event = linux_eventfd(0)
                    dup2(event, file)
                    close(event)
                    _ = core.after(milliseconds: 300) {
                        let looks = watcher.count
                        var one: UInt64 = 1
                        watcher.onLook = { _ in
                            core.register(file, mask: nil, watcher: nil)
                            continuation.resume(returning: (looks, watcher.masks))
                        }
                        write(file, &one, 8)
                    }
                }
                core.register(file, mask: LINUX_EPOLLIN, watcher: watcher)
            }
        }
        #expect(looks == 3)
        #expect(marks == [LINUX_EPOLLIN, LINUX_EPOLLIN, LINUX_EPOLLIN, LINUX_EPOLLIN])
    }

    @Test("a descriptor that epoll refuses is let go of with its registration")
    func refusedAndGivenUp() async throws {
        let loop = try TransferLoop(name: "test-given-up")
        defer { loop.stop() }
        let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        let looks = await withCheckedContinuation { continuation in
            loop.post { core in
                let watcher = CountingWatcher()
                watcher.onLook = { _ in core.register(file, mask: nil, watcher: nil) }
                core.register(file, mask: LINUX_EPOLLIN, watcher: watcher)
                _ = core.after(milliseconds: 300) { continuation.resume(returning: watcher.count) }
            }
        }
        #expect(looks == 1)
    }
}

/// A watcher that records the masks with which it was called.
private final class CountingWatcher: DescriptorWatcher {
    private(set) var masks: [UInt32] = []
    var count: Int { masks.count }
    var onLook: (Int) -> Void = { _ in }

    func descriptorIsReady(_ mask: UInt32) {
        masks.append(mask)
        onLook(masks.count)
    }
}

/// A handler that cancels its exchange as soon as a part of the body has been received.
private final class CancellingHandler: ExchangeHandler {
    private(set) var events: [String] = []
    private let core: LoopCore
    private let ended: (CancellingHandler) -> Void

    init(_ core: LoopCore, ended: @escaping (CancellingHandler) -> Void) {
        self.core = core
        self.ended = ended
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { true }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        events.append("body")
        core.cancel(exchange.id)
        return .accepted
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict { .filled(0) }

    func evaluate(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool { true }

    func rewind(to offset: Int64) -> Bool { true }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        events.append("ended")
        ended(self)
    }
}

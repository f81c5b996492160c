import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import ControlServer

@Suite("Accepting without descriptors (F18)")
struct AcceptHandlerTests {
    /// A listening channel with the handler under test in front.
    private func withListener(
        reserve size: Int, _ body: (any Channel, String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let channel = try await ServerBootstrap(group: group)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(
                            AcceptHandler(reserve: DescriptorReserve(size: size)))
                    }
                }
                .bind(unixDomainSocketPath: directory + "/s").get()
            try await body(channel, directory + "/s")
            try await channel.close()
            try await group.shutdownGracefully()
        }
    }

    private func isAccepting(_ channel: any Channel) async -> Bool {
        (try? await channel.getOption(.autoRead).get()) == true
    }

    private func fail(_ channel: any Channel, _ number: Int32) {
        channel.pipeline.fireErrorCaught(IOError(errnoCode: number, reason: "accept"))
    }

    @Test("with nothing in reserve accepting pauses, and goes on by itself", arguments: [EMFILE, ENFILE])
    func pauses(_ number: Int32) async throws {
        try await withListener(reserve: 0) { channel, path in
            fail(channel, number)
            #expect(await !isAccepting(channel))
            let client = try TestClient(connectingTo: path)
            while await !isAccepting(channel) { await Task.yield() }
            #expect(client.descriptor >= 0)
        }
    }

    @Test("A19: as long as there is a reserve accepting does not pause")
    func usesReserve() async throws {
        try await withListener(reserve: 2) { channel, _ in
            fail(channel, EMFILE)
            fail(channel, EMFILE)
            #expect(await isAccepting(channel))
            fail(channel, EMFILE)
            #expect(await !isAccepting(channel))
        }
    }

    @Test("another connection's failure changes nothing")
    func otherErrors() async throws {
        try await withListener(reserve: 0) { channel, _ in
            fail(channel, ECONNABORTED)
            #expect(await isAccepting(channel))
            #expect(channel.isActive)
        }
    }

    @Test("the reserve gives out what it has and fills up again")
    func reserve() {
        let reserve = DescriptorReserve(size: 2)
        #expect(reserve.count == 2)
        #expect(reserve.release())
        #expect(reserve.release())
        #expect(!reserve.release())
        reserve.refill()
        #expect(reserve.count == 2)
    }
}

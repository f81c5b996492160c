import TestSupport
import Testing

@testable import Transfer

@Suite("Bytes that several downloads may take up together")
struct StorageAllowanceTests {
    @Test("what one share holds is none for the next, and comes back when it ends with less")
    func shares() throws {
        let allowance = StorageAllowance(limit: 100, kept: 40)
        let (one, other) = (allowance.share(takingOver: 10), allowance.share())
        #expect(allowance.used == 40 && allowance.kept == 30)
        try one.reserve(50)
        #expect(allowance.used == 80 && allowance.room == 20)
        let error = #expect(throws: TransferError.self) { try other.reserve(21) }
        #expect(error?.code == .allowanceUsedUp)
        #expect(error?.message == "the file needs 21 bytes more, and 80 of the 100 bytes allowed are used")
        #expect(other.held == 0 && allowance.used == 80)
        try other.reserve(20)
        one.end(keeping: 15)
        #expect(allowance.used == 65 && allowance.kept == 45 && one.held == 0)
        other.end(keeping: 0)
        #expect(allowance.used == 45)
    }

    @Test("a file of unknown size takes what is left, to the last byte")
    func growing() throws {
        let allowance = StorageAllowance(limit: 100)
        let share = allowance.share()
        #expect(try share.grow(to: 30, ahead: 50) == 80)
        #expect(try share.grow(to: 60, ahead: 50) == 80)
        #expect(try share.grow(to: 90, ahead: 50) == 100)
        #expect(throws: TransferError.self) { try share.grow(to: 101, ahead: 50) }
        #expect(share.held == 100)
    }

    @Test("a limit that becomes less takes nothing back, and one that is gone ends nothing")
    func changed() throws {
        let allowance = StorageAllowance(limit: 100)
        let share = allowance.share()
        try share.reserve(80)
        allowance.limit = 50
        #expect(share.held == 80 && allowance.room == 0)
        try share.reserve(80)
        try share.reserve(60)
        #expect(throws: TransferError.self) { try share.reserve(61) }
        allowance.limit = nil
        try share.reserve(.max)
        #expect(allowance.room == nil)
    }

    @Test("numbers without measure are held to what there is")
    func extremes() throws {
        let allowance = StorageAllowance(limit: .max, kept: .max)
        let share = allowance.share(takingOver: .max)
        #expect(throws: TransferError.self) { try allowance.share().reserve(.max) }
        share.end(keeping: .max)
        allowance.share().end(keeping: .max)
        #expect(allowance.used == .max && allowance.room == 0)
    }
}

extension StorageAllowanceTests {
    private func download(
        _ answer: ScriptedAnswer, limit: Int64, segments: Segments = .fixed(1)
    ) async throws -> (Result<PublishedFile, TransferError>, StorageAllowance, Place, StorageShare) {
        let place = try Place()
        let server = try ScriptedServer(["/f": [answer]])
        let allowance = StorageAllowance(limit: limit)
        let share = allowance.share()
        var target = place.target("f")
        target.share = share
        var request = TransferRequest(url: server.url("/f"))
        request.segments = segments
        let manager = try SessionManager(configuration: .test())
        let result = await manager.download(request, to: target).outcome.result
        return (result, allowance, place, share)
    }

    @Test("a file that is told to be too large is refused before a byte, and one that fits is taken whole beforehand")
    func told() async throws {
        let file = Resource(size: 8 << 20)
        let (refused, _, place, share) = try await download(.serve(file), limit: (8 << 20) - 1, segments: .fixed(4))
        #expect(refused.error?.code == .allowanceUsedUp && share.held == 0)
        #expect(place.names.isEmpty)
        let (taken, allowance, _, _) = try await download(.serve(file), limit: 8 << 20, segments: .fixed(4))
        #expect(taken.error == nil && allowance.used == 8 << 20 && allowance.room == 0)
    }

    @Test("a file of unknown size ends where the allowance does, and no byte beyond it is written")
    func unknown() async throws {
        let (limit, file) = (Int64(6 << 20), Resource(size: 16 << 20))
        let (result, allowance, place, share) = try await download(.chunked(file), limit: limit)
        #expect(result.error?.code == .allowanceUsedUp)
        #expect(share.held <= limit && allowance.used <= limit)
        let sizes = try place.names.map { try #require(place.directory.sizeOfFile($0)) }
        #expect(sizes.allSatisfy { $0 <= limit }, "\(sizes)")
        let (whole, _, _, _) = try await download(.chunked(file), limit: 16 << 20)
        #expect(whole.error == nil)
    }
}

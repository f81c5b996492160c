import Testing

@testable import TaskStore

@Suite("How much of the past each owner may have")
struct OwnerSharesTests {
    @Test("each has the limit, as long as all together have no more than four times that")
    func limit() {
        #expect(OwnerShares.level(of: [], limit: 10) == 10)
        #expect(OwnerShares.level(of: [100], limit: 10) == 10)
        #expect(OwnerShares.level(of: [100, 100, 100, 100, 0], limit: 10) == 10)
        #expect(OwnerShares.level(of: [5], limit: .max) == .max)
        #expect(OwnerShares.level(of: [5], limit: 0) == 0)
    }

    @Test("past that, those who have the most have alike, and whoever has less keeps it")
    func together() {
        // 40 are shared: 2 and 3 are kept, 35 remain for four owners.
        #expect(OwnerShares.level(of: [100, 2, 100, 100, 3, 100], limit: 10) == 8)
        #expect(OwnerShares.level(of: Array(repeating: 1, count: 100), limit: 10) == 0)
    }
}

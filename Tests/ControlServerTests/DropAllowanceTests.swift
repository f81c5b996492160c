import Curl
import Testing

@testable import ControlServer

@Suite struct DropAllowanceTests {
    @Test("each user has so many a second, whatever others have had")
    func shares() {
        var allowance = DropAllowance()
        let now = MonotonicTime.now()
        func isAllowed(_ user: UInt32, after milliseconds: Int64 = 0) -> Bool {
            allowance.allows(user, at: now.advanced(milliseconds: milliseconds))
        }
        for _ in 0..<DropAllowance.mostOfUser { #expect(isAllowed(1)) }
        #expect(!isAllowed(1))
        #expect(isAllowed(2))
        #expect(!isAllowed(1, after: 900))
        #expect(isAllowed(1, after: 2_000))
    }
}

import Testing

@testable import ControlServer

@Suite struct ConnectionLimitsTests {
    @Test(
        "few descriptors make few connections, of which one user has half",
        arguments: [(Int.max, 4096, 512), (900, 300, 150), (36, 12, 6), (0, 5, 3)])
    func descriptors(_ count: Int, _ total: Int, _ perUser: Int) {
        var limits = ConnectionLimits()
        limits.fit(intoDescriptors: count)
        #expect(limits.total == total)
        #expect(limits.perUser == perUser)
    }
}

import Testing

@testable import ControlServer

@Suite("Descriptors kept back")
struct DescriptorReserveTests {
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

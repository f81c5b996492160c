import Testing

@testable import TaskModel

@Suite("Sums that cannot overflow")
struct ClampedArithmeticTests {
    @Test("what lies beyond the last number counts as that one")
    func ends() {
        #expect(Int64.max.addingClamped(1) == .max)
        #expect(Int64.min.addingClamped(-1) == .min)
        #expect(Int64.min.subtractingClamped(1) == .min)
        #expect(Int64.max.subtractingClamped(-1) == .max)
        #expect(Int64(0).subtractingClamped(.min) == .max)
        #expect(Int64.max.multipliedClamped(by: 2) == .max)
        #expect(Int64.max.multipliedClamped(by: -2) == .min)
        #expect(Int64.min.multipliedClamped(by: -1) == .max)
        #expect(Int64(6).addingClamped(-7) == -1)
        #expect(Int64(6).multipliedClamped(by: 7) == 42)
    }
}

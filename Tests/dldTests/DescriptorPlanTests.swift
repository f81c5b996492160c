import Testing

@testable import dld

@Suite("The division of file descriptors")
struct DescriptorPlanTests {
    @Test(
        "tasks, clients and the daemon itself get along with any limit",
        arguments: [0, 1, 64, 128, 256, 1_024, 65_536])
    func limits(limit: Int) {
        let plan = DescriptorPlan(limit: limit)
        let active = plan.activeTasks(16)
        let ending = plan.endingTasks(besideActive: active)
        let clients = plan.descriptorsForClients(besideActive: active)
        #expect((1...16).contains(active) && (active...4_096).contains(ending) && clients >= 0)
        // With fewer descriptors than the daemon needs for itself, one task runs all the same.
        if limit >= 256 { #expect(56 + 4 * active + 2 * ending + clients <= limit) }
    }

    @Test("a common limit leaves room for batches of files, and the service's limit for the largest")
    func room() {
        #expect(DescriptorPlan(limit: 1_024).endingTasks(besideActive: 16) == 109)
        #expect(DescriptorPlan(limit: 65_536).endingTasks(besideActive: 16) == 4_096)
    }

    @Test("without a known limit nothing is restricted, and no number traps")
    func extremes() {
        #expect(DescriptorPlan(limit: nil).activeTasks(10_000) == 10_000)
        #expect(DescriptorPlan(limit: nil).descriptorsForClients(besideActive: 10_000) == .max)
        for limit in [Int.min, -1, Int.max] {
            for tasks in [0, 1, Int.max] {
                let plan = DescriptorPlan(limit: limit)
                #expect(plan.activeTasks(tasks) >= 1 && plan.endingTasks(besideActive: tasks) >= 1)
                #expect(plan.descriptorsForClients(besideActive: tasks) >= 0)
            }
        }
    }
}

import Testing

@testable import TaskQueue

@Suite("The count of changes")
struct ChangeCountTests {
    @Test("a caller that waits is resumed by the next change, and one that is late at once", .timeLimit(.minutes(1)))
    func waiting() async {
        let changes = ChangeCount()
        let seen = changes.value
        async let first: Void = changes.change(since: seen)
        async let second: Void = changes.change(since: seen)
        changes.add()
        _ = await (first, second)
        await changes.change(since: seen)
        #expect(changes.value == seen + 1)
    }

    @Test("a cancelled caller is resumed without a change", .timeLimit(.minutes(1)))
    func cancelling() async {
        let changes = ChangeCount()
        let waiting = Task { await changes.change(since: changes.value) }
        waiting.cancel()
        await waiting.value
    }
}

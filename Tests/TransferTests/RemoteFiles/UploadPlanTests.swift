import Testing

@testable import Transfer

@Suite("How a file gets onto a file server")
struct UploadPlanTests {
    private let error = TransferError(.truncated, "cut")
    private let aside = UploadPlan.Step.storeAside(from: 0)
    private var failure: UploadPlan.Step { .fail(error, leavesRemains: false) }

    private func steps(of plan: UploadPlan = UploadPlan(), _ events: UploadPlan.Event...) -> [UploadPlan.Step] {
        var plan = plan
        return [plan.step] + events.map { plan.next($0) }
    }

    /// A plan to continue an earlier attempt's rest of a file of 1,000,000 bytes.
    private var continued: UploadPlan {
        var plan = UploadPlan(length: 1_000_000, hasRemains: true)
        plan.mayLeaveRemains = true
        return plan
    }

    @Test("aside, and under its name at once")
    func plain() {
        #expect(steps(.done) == [aside, .finish])
    }

    @Test("what has the name already is removed first where it stands in the way")
    func replaces() {
        #expect(steps(.commandRefused, .done) == [aside, .replace, .finish])
    }

    @Test("where nothing can be renamed, or the temporary name is not taken, it goes straight there")
    func directly() {
        #expect(steps(.commandRefused, .commandRefused, .done) == [aside, .replace, .storeDirectly, .finish])
        #expect(steps(.nameRefused(error), .done) == [aside, .storeDirectly, .finish])
        #expect(steps(.nameRefused(error), .nameRefused(error)) == [aside, .storeDirectly, failure])
        #expect(steps(.nameRefused(error), .failed(error, begun: true)) == [aside, .storeDirectly, failure])
    }

    @Test("missing directories are created once, before the file goes to its own name")
    func makesDirectories() {
        let plan = UploadPlan(mayMakeDirectories: true)
        let refused = UploadPlan.Event.nameRefused(error)
        #expect(steps(of: plan, refused, .done, .done) == [aside, .makeDirectories, aside, .finish])
        #expect(steps(of: plan, refused, .commandRefused, .done) == [aside, .makeDirectories, aside, .finish])
        #expect(
            steps(of: plan, refused, .done, refused, refused)
                == [aside, .makeDirectories, aside, .storeDirectly, failure])
        #expect(steps(of: plan, refused, .failed(error, begun: false)) == [aside, .makeDirectories, failure])
    }

    @Test("what a failure leaves is removed, and the failure stays what it was")
    func cleansUp() {
        let later = TransferError(.cannotConnect, "gone")
        #expect(steps(.failed(error, begun: false)) == [aside, failure])
        #expect(steps(.failed(error, begun: true), .done) == [aside, .cleanUp(error), failure])
        #expect(steps(.failed(error, begun: true), .failed(later, begun: true)) == [aside, .cleanUp(error), failure])
    }

    @Test("broken between removing and renaming, the whole file stays where it is")
    func brokenReplacement() {
        #expect(steps(.commandRefused, .failed(error, begun: true)) == [aside, .replace, failure])
        let whole: [UploadPlan.Event] = [
            .measured(5), .compared(size: 5), .done, .measured(1_000_000), .commandRefused,
        ]
        var plan = continued
        for event in whole { _ = plan.next(event) }
        #expect(plan.next(.failed(.cancelled, begun: true)) == .fail(.cancelled, leavesRemains: false))
    }

    @Test("where another attempt may follow, what is there stays for it, unless it is unwanted or changed")
    func leaves() {
        var plan = UploadPlan(length: 10)
        plan.mayLeaveRemains = true
        #expect(steps(of: plan, .failed(error, begun: true)) == [aside, .fail(error, leavesRemains: true)])
        #expect(steps(of: plan, .failed(error, begun: false)) == [aside, failure])
        let changed = TransferError(.sourceChanged, "changed")
        #expect(steps(of: plan, .failed(changed, begun: true)) == [aside, .cleanUp(changed)])
        #expect(steps(of: plan, .failed(.cancelled, begun: true)) == [aside, .cleanUp(.cancelled)])
    }

    @Test("a rest is measured, its end compared, added to, measured again and then renamed")
    func goesOn() {
        let from = 700_000 - UploadPlan.overlap
        #expect(
            steps(
                of: continued, .measured(700_000), .compared(size: 700_000), .done, .measured(1_000_000), .done)
                == [
                    .measureRest, .compareRemains(from: from), .storeAside(from: 700_000), .measureWhole, .rename,
                    .finish,
                ])
        #expect(steps(of: continued, .measured(5), .compared(size: 5)).last == .storeAside(from: 5))
        #expect(
            steps(
                of: continued, .measured(5), .compared(size: 5), .done, .measured(1_000_000), .commandRefused, .done
            ).suffix(3) == [.rename, .replace, .finish])
    }

    @Test(
        "what is no rest of this file, or cannot be added to, is written anew",
        arguments: [nil, 0, 1_000_000, 1_000_001])
    func startsOver(size: Int64?) {
        #expect(steps(of: continued, .measured(size)) == [.measureRest, aside])
        #expect(steps(of: continued, .measured(500), .compared(size: nil)).last == aside)
        #expect(steps(of: continued, .measured(500), .nameRefused(error)).last == aside)
        #expect(steps(of: continued, .measured(500), .compared(size: 500), .nameRefused(error)).last == aside)
        // Another client wrote to the file meanwhile.
        #expect(
            steps(of: continued, .measured(500), .compared(size: 500), .done, .measured(1_000_100)).last == aside)
    }

    @Test("a rest that cannot be looked at now stays for later")
    func unreachable() {
        #expect(steps(of: continued, .failed(error, begun: true)) == [.measureRest, .fail(error, leavesRemains: true)])
        #expect(
            steps(of: continued, .measured(500), .failed(error, begun: true)).last == .fail(error, leavesRemains: true))
    }
}

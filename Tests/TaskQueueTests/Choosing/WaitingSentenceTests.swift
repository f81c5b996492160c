import TaskModel
import Testing

@testable import TaskQueue

@Suite("Why a task does not run, in a sentence")
struct WaitingSentenceTests {
    private func sentence(
        _ state: TaskState = .queued, _ reason: TaskReason? = nil, notBefore: Milliseconds? = nil,
        error: TaskFailure? = nil, isOwn: Bool = true, after: TaskID? = nil, startAt: Milliseconds? = nil,
        url: String = "https://example.org/a"
    ) throws -> WaitingSentence {
        var specification = TaskSpecification(url: url)
        specification.afterTask = after
        specification.startAt = startAt
        var record = TaskRecord(
            id: TaskID(5), specification: specification, owner: 1000,
            lifecycle: try #require(TaskLifecycle(state: state, reason: reason, notBefore: notBefore)), createdAt: 0)
        record.error = error
        return WaitingSentence(record: record, now: 0, utcOffset: { _ in 3_600 }, isOwn: isOwn)
    }

    @Test("a missing login and a missing source are called so, and the way to give them is one of the task's protocol")
    func missing() throws {
        let login = TaskFailure(code: .permissionDenied, message: "sftp requires a user name and password, or a key")
        #expect(
            try sentence(.paused, .auth, error: login, url: "sftp://h/a").text
                == "a login is needed; give a login: dlctl set 5 --user NAME --password-file FILE (or a password or key "
                + "in hosts.NAME.credential of the configuration, or --netrc FILE with a new task)")
        #expect(try sentence(.paused, .auth).text?.hasSuffix("(or --header 'K: V')") == true)
        let source = TaskFailure(code: .sourceChanged, message: "there is no file /f to upload")
        #expect(
            try sentence(.paused, .sourceChanged, error: source).text
                == "the source file is gone; put it back, then: dlctl resume 5")
    }

    @Test("a ready task is told what it waits for")
    func ready() throws {
        let sentence = try sentence()
        func held(_ cause: HeldHost.Cause, _ until: Milliseconds?) -> String {
            sentence.text(
                .heldHost(HeldHost(fingerprint: 1, host: "https://example.org:443", cause: cause, until: until)))
        }
        #expect(sentence.text(nil) == "is about to start")
        #expect(
            sentence.text(.slots(16), place: .exactly(37))
                == "waits for one of 16 slots (limits.active-tasks); 37 tasks are before it")
        #expect(sentence.text(.slots(1), place: .exactly(0)).hasSuffix("; it is the next one"))
        #expect(sentence.text(.slots(1), place: .exactly(1)).hasSuffix("; 1 task is before it"))
        #expect(sentence.text(.slots(1), place: .moreThan(2_000)).hasSuffix("; more than 2000 tasks are before it"))
        #expect(
            sentence.text(.ownerLimit(4))
                == "the owner's 4 active tasks are the limit (limits.active-tasks-per-owner); starts when one of them "
                + "ends")
        #expect(sentence.text(.schedule(until: 60_000)) == "paused by the schedule until 01:01:00")
        #expect(sentence.text(.schedule(until: nil)) == "paused by the schedule until the configuration changes")
        #expect(
            held(.retryAfter, 3_000)
                == "host https://example.org:443 is on hold until 01:00:03, because it asked for a delay (Retry-After)")
        #expect(held(.failures, 90_000_000).contains(" until 1970-01-02 02:00:00, because it failed"))
        #expect(held(.probe, nil).hasSuffix("is on hold while another task tries whether it works again"))
        #expect(held(.noRoute, 0).hasSuffix("cannot be reached from this machine; the next try is at 01:00:00"))
    }

    @Test("a waiting task is told what it waits for, and when that is looked at again")
    func waiting() throws {
        let error = TaskFailure(code: .http(503), message: "the server replied 503")
        #expect(
            try sentence(.waiting, .retry, notBefore: 3_000, error: error).text
                == "waits after a failure (the server replied 503); the next try is at 01:00:03")
        #expect(try sentence(.waiting, .scheduled, notBefore: 3_000).text == "starts at 01:00:03")
        #expect(try sentence(.waiting, .dependency, after: TaskID(7)).text == "waits for task 7 to complete")
        for reason in [TaskReason.network, .diskFull, .disk] {
            let text = try #require(try sentence(.waiting, reason, notBefore: 3_000, error: error).text)
            #expect(text.hasSuffix(" (the server replied 503); the next check is at 01:00:03"))
        }
        #expect(try sentence(.waiting, .quota).text?.contains("limits.bytes-per-owner") == true)
    }

    @Test("a paused task is told which command takes it up again")
    func paused() throws {
        #expect(try sentence(.paused, .user).text == "paused by you: dlctl resume 5")
        #expect(
            try sentence(.paused, .user, startAt: 60_000).text
                == "paused by you: dlctl resume 5; it then starts at 01:01:00")
        #expect(try sentence(.paused, .user, startAt: 0).text == "paused by you: dlctl resume 5")
        #expect(try sentence(.paused, .user, isOwn: false).text == "paused by a user: dlctl resume 5")
        for reason in [TaskReason.urlExpired, .auth, .sourceChanged] {
            #expect(try sentence(.paused, reason).text?.contains(": dlctl ") == true)
        }
    }

    @Test("a task that has ended waits for nothing", arguments: [TaskState.completed, .failed, .cancelled])
    func ended(state: TaskState) throws {
        #expect(try sentence(state).text == nil)
    }
}

import FoundationEssentials
import Testing

@testable import TaskModel

@Suite("Changes to a task")
struct TaskChangesTests {
    private static func decode(_ json: String) throws -> TaskChanges {
        try JSONDecoder().decode(TaskChanges.self, from: Data(json.utf8))
    }

    private static func encode(_ changes: TaskChanges) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(changes), as: UTF8.self)
    }

    private static let full = """
        {"checksum":"md5:1","connections":4,"directory":"d","headers":["A: b"],"limit":1024,"mirrors":["http://m/a"],\
        "output":"o","password":"p","priority":"high","startAt":5,"url":"http://h/a","user":"u"}
        """

    private static let nothing = """
        {"checksum":null,"connections":null,"directory":null,"headers":null,"limit":null,"mirrors":null,\
        "output":null,"password":null,"priority":null,"startAt":null,"user":null}
        """

    @Test(
        "every field comes back as it went, and null stays null",
        arguments: [
            full, "{}", #"{"connections":"auto"}"#,
            nothing,
        ])
    func roundTrip(json: String) throws {
        let changes = try Self.decode(json)
        #expect(try Self.encode(changes) == json)
        #expect(changes.isEmpty == (json == "{}"))
    }

    @Test("what changes is laid over what was asked for; null takes it back, and what is not named stays")
    func applied() throws {
        var specification = TaskSpecification(url: "http://h/old")
        specification.noMtime = true
        let changed = try Self.decode(Self.full).applied(to: specification)
        #expect(changed.url == "http://h/a" && changed.output == "o" && changed.connections == .exactly(4))
        #expect(changed.limit == 1024 && changed.headers == ["A: b"] && changed.priority == .high)
        #expect(changed.startAt == 5 && changed.noMtime && changed.directory == "d" && changed.checksum == "md5:1")
        #expect(changed.user == "u" && changed.password == "p" && changed.mirrors == ["http://m/a"])
        let plain = try Self.decode(Self.nothing).applied(to: changed)
        var expected = specification
        expected.url = "http://h/a"
        #expect(plain == expected)
        #expect(try Self.decode(#"{"limit":7}"#).applied(to: changed).headers == ["A: b"])
    }

    @Test(
        "a value of another type, and a field that cannot be changed, are named",
        arguments: [
            (#"{"url":null}"#, "url", "must be a string"), (#"{"url":7}"#, "url", "must be a string"),
            (#"{"limit":"fast"}"#, "limit", "must be a whole number of bytes per second, or null"),
            (#"{"limit":1.5}"#, "limit", "must be a whole number of bytes per second, or null"),
            (#"{"connections":"many"}"#, "connections", "must be auto or a whole number from 1 to 16, or null"),
            (#"{"headers":"A: b"}"#, "headers", "must be an array of strings, or null"),
            (#"{"headers":[null]}"#, "headers", "must be an array of strings, or null"),
            (#"{"priority":"urgent"}"#, "priority", "must be one of low, normal, high, now, or null"),
            (#"{"startAt":"22:00"}"#, "startAt", "must be a whole number of milliseconds since 1970, or null"),
            (#"{"output":[]}"#, "output", "must be a string, or null"),
            (#"{"directory":7}"#, "directory", "must be a string, or null"),
            (#"{"mirrors":"http://m/a"}"#, "mirrors", "must be an array of strings, or null"),
            (
                #"{"metalink":true}"#, "metalink",
                "cannot be changed after the task is added; only url, output, connections, limit, headers, priority, "
                    + "startAt, directory, user, password, checksum, mirrors, proxy, insecure, checksumURL, maxSize, onConflict, "
                    + "nameFrom, noMtime, cookies, netrc, userAgent, referer, caCertificates, connectTimeout, "
                    + "stallTimeout, maxAttempts, afterTask, batch can"
            ),
            (#"{"header":["A: b"]}"#, "header", "is not a field that can be changed; did you mean headers?"),
            (#"{"zzzzzzzz":1}"#, "zzzzzzzz", "is not a field that can be changed"),
        ])
    func refused(json: String, field: String, message: String) {
        #expect(throws: FieldError(field: field, message: message)) { try Self.decode(json) }
    }

    @Test("a user that is taken back takes the password along; a digest takes the place of a list of digests")
    func belongsTogether() throws {
        var specification = TaskSpecification(url: "http://h/a")
        (specification.user, specification.password) = ("u", "p")
        #expect(try Self.decode(#"{"user":null}"#).applied(to: specification).password == nil)
        #expect(try Self.decode(#"{"user":"v"}"#).applied(to: specification).password == "p")
        #expect(try Self.decode(#"{"password":null}"#).applied(to: specification).user == "u")
        specification.checksumURL = "http://h/SHA256SUMS"
        for checksum in [#"{"checksum":"md5:0"}"#, #"{"checksum":null}"#] {
            #expect(try Self.decode(checksum).applied(to: specification).checksumURL == nil)
        }
    }

    @Test("what one task alone can have is told from what several can")
    func ofOneTask() throws {
        for (json, field) in [
            (#"{"url":"http://h/a"}"#, "url"), (#"{"output":"o"}"#, "output"), (#"{"checksum":"md5:0"}"#, "checksum"),
            (#"{"mirrors":["http://m/a"]}"#, "mirrors"),
        ] { #expect(try Self.decode(json).fieldOfOneTask == field) }
        #expect(try Self.decode(Self.nothing).fieldOfOneTask == nil)
        #expect(try Self.decode(#"{"directory":"d","user":"u","password":"p"}"#).fieldOfOneTask == nil)
    }

    // MARK: - Resulting state

    private static func lifecycle(_ state: TaskState, _ reason: TaskReason? = nil) throws -> TaskLifecycle {
        try #require(TaskLifecycle(state: state, reason: reason, notBefore: state == .waiting ? 500 : nil))
    }

    private static let now: Milliseconds = 100
    private static let later = TaskLifecycle(startAt: 900, now: now)

    private static func updated(_ lifecycle: TaskLifecycle, _ json: String) throws -> TaskLifecycle {
        try lifecycle.updated(by: decode(json), now: now)
    }

    @Test(
        "another URL frees what waits or is stopped on account of the old one, and nothing else",
        arguments: [
            (TaskState.queued, nil, false), (.failed, nil, true), (.waiting, .retry, true), (.waiting, .network, true),
            (.waiting, .scheduled, false), (.waiting, .diskFull, false), (.paused, .user, false),
            (.paused, .urlExpired, true), (.paused, .auth, true), (.paused, .sourceChanged, true),
        ] as [(TaskState, TaskReason?, Bool)])
    func url(state: TaskState, reason: TaskReason?, isFreed: Bool) throws {
        let before = try Self.lifecycle(state, reason)
        let after = try Self.updated(before, #"{"url":"http://h/b"}"#)
        #expect(after == (isFreed ? TaskLifecycle() : before))
        let scheduled = try Self.updated(before, #"{"url":"http://h/b","startAt":900}"#)
        let isHeld = state == .paused && !isFreed
        #expect(scheduled == (isHeld ? before : Self.later))
        for harmless in [#"{"limit":7}"#, #"{"output":"o"}"#, #"{"priority":"low"}"#, #"{"connections":1}"#] {
            #expect(try Self.updated(before, harmless) == before)
        }
    }

    @Test(
        "other header fields, another user and another password free what the server refused, and a directory nothing",
        arguments: [
            (#"{"headers":["A: b"]}"#, true), (#"{"user":"u"}"#, true), (#"{"password":"p"}"#, true),
            (#"{"directory":"d"}"#, false), (#"{"mirrors":null}"#, false),
        ])
    func access(json: String, isFreed: Bool) throws {
        for reason in [TaskReason.auth, .urlExpired] {
            let lifecycle = try Self.lifecycle(.paused, reason)
            #expect(try Self.updated(lifecycle, json) == (isFreed ? TaskLifecycle() : lifecycle))
        }
        for lifecycle in [try Self.lifecycle(.failed), try Self.lifecycle(.paused, .user)] {
            #expect(try Self.updated(lifecycle, json) == lifecycle)
        }
    }

    @Test("a mirror or another digest frees what failed and what waits, as another URL does")
    func source() throws {
        for json in [#"{"mirrors":["http://m/a"]}"#, #"{"checksum":"md5:0"}"#, #"{"checksum":null}"#] {
            for lifecycle in [
                try Self.lifecycle(.failed), try Self.lifecycle(.waiting, .retry), try Self.lifecycle(.paused, .auth),
            ] { #expect(try Self.updated(lifecycle, json) == TaskLifecycle()) }
            let paused = try Self.lifecycle(.paused, .user)
            #expect(try Self.updated(paused, json) == paused)
        }
    }

    @Test("a time to start holds what would start before it, and its end frees what waits for it alone")
    func startAt() throws {
        let free: [TaskLifecycle] = [
            TaskLifecycle(), try Self.lifecycle(.waiting, .scheduled), try Self.lifecycle(.waiting, .retry),
        ]
        for lifecycle in free { #expect(try Self.updated(lifecycle, #"{"startAt":900}"#) == Self.later) }
        for past in [#"{"startAt":null}"#, #"{"startAt":50}"#] {
            #expect(try Self.updated(Self.lifecycle(.waiting, .scheduled), past) == TaskLifecycle())
            for reason in [TaskReason.retry, .network, .diskFull] {
                let lifecycle = try Self.lifecycle(.waiting, reason)
                #expect(try Self.updated(lifecycle, past) == lifecycle)
            }
        }
        for lifecycle in [try Self.lifecycle(.paused, .user), try Self.lifecycle(.failed)] {
            #expect(try Self.updated(lifecycle, #"{"startAt":900}"#) == lifecycle)
        }
    }

    @Test("what is completed or cancelled is not changed, and the refusal says what can be done")
    func ended() throws {
        for state in [TaskState.completed, .cancelled] {
            let lifecycle = try Self.lifecycle(state)
            #expect(throws: IllegalTransition(event: .update, state: state)) {
                try Self.updated(lifecycle, #"{"limit":7}"#)
            }
        }
        #expect("\(IllegalTransition(event: .update, state: .cancelled))".contains("retry"))
        #expect(
            "\(IllegalTransition(event: .update, state: .completed))"
                == "is completed; it can no longer be changed")
    }
}

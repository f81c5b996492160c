import Logging
import TaskQueue
import Testing

@testable import dld

@Suite("The fields of a message in the journal")
struct JournalFieldsTests {
    @Test("an entry about a task has fields of its own, a message id, and a text without them")
    func entry() {
        let message = LogMessage(
            level: .warning, text: "task 42 failed",
            metadata: [
                "event": "task-failed", "task": "42", "batch": "b", "host": "h", "url": "u", "http-status": "404",
                "curl-code": "7", "errno": "111", "bytes": "1", "seconds": "2.000", "attempt": "3", "owner": "1000",
                "reason": "r",
            ])
        #expect(
            JournalFields.fields(of: message) == [
                "MESSAGE=task 42 failed", "PRIORITY=4", "SYSLOG_IDENTIFIER=dld", "ATTEMPT=3", "BATCH=b", "BYTES=1",
                "CURL_CODE=7", "ERRNO=111", "MESSAGE_ID=\(TaskLogKind.failed.messageID)", "DLD_EVENT=task-failed",
                "HOST=h", "HTTP_STATUS=404", "OWNER_UID=1000", "DLD_REASON=r", "SECONDS=2.000", "TASK_ID=42", "URL=u",
            ])
    }

    @Test("other metadata has fields that begin with DLD_, and is part of the text")
    func others() {
        let message = LogMessage(level: .info, text: "ready", metadata: ["socket": "/s", "last-error": "e"])
        #expect(
            JournalFields.fields(of: message) == [
                "MESSAGE=ready (last-error=e, socket=/s)", "PRIORITY=6", "SYSLOG_IDENTIFIER=dld", "DLD_LAST_ERROR=e",
                "DLD_SOCKET=/s",
            ])
    }

    @Test("several tasks are several fields")
    func several() {
        let message = LogMessage(level: .info, text: "2 tasks paused", metadata: ["event": "x", "task": ["1", "2"]])
        #expect(JournalFields.fields(of: message).suffix(2) == ["TASK_ID=1", "TASK_ID=2"])
        #expect(!JournalFields.fields(of: message).contains { $0.hasPrefix("MESSAGE_ID=") })
    }

    @Test("A22: a line end in a value makes no field and no line, and long values are cut")
    func hostile() {
        let message = LogMessage(
            level: .info, text: "task 1\nPRIORITY=0",
            metadata: ["event": "task-failed", "url": "http://h/\nPRIORITY=0", "batch": .string("é" + longWord)])
        let fields = JournalFields.fields(of: message)
        #expect(fields.filter { $0.hasPrefix("PRIORITY=") } == ["PRIORITY=6"])
        #expect(fields.contains(#"MESSAGE=task 1\u{a}PRIORITY=0"#))
        #expect(fields.contains("URL=http://h/\nPRIORITY=0"))
        #expect(fields.allSatisfy { $0.utf8.count <= LogMessage.longestValue + 6 })
        #expect(LogLine.standardError(message).filter(\.isNewline).count == 1)
    }

    private var longWord: String { String(repeating: "é", count: 5_000) }

    @Test("the line for standard error does not repeat what the text tells")
    func line() {
        let message = LogMessage(
            level: .info, text: "task 42 completed: a.iso, 1.2 GiB in 31 s",
            metadata: [
                "event": "task-completed", "task": "42", "host": "http://h:80", "url": "http://h/a.iso",
                "bytes": "1", "seconds": "31.000", "attempt": "1", "owner": "1000",
            ])
        #expect(
            LogLine.standardError(message)
                == "dld: info: task 42 completed: a.iso, 1.2 GiB in 31 s (owner=1000, url=http://h/a.iso)\n")
    }

    @Test("a text is cut between characters")
    func cut() {
        #expect(LogText.cut("abcdef", to: 6) == "abcdef" && LogText.cut("abcdefg", to: 6) == "abc…")
        #expect(LogText.cut("ééééé", to: 6) == "é…")
    }
}

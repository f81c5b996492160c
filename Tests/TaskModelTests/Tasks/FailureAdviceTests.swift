import TaskModel
import Testing

@Suite("What to do about a task that failed")
struct FailureAdviceTests {
    @Test("every code has advice of its own", arguments: FailureAdvice.codes)
    func codes(code: ErrorCode) {
        let advice = FailureAdvice.text(for: code, task: "42")
        #expect(!advice.isEmpty)
        if code != .internal, code != .notResumable {
            #expect(advice != FailureAdvice.text(for: .internal, task: "42"))
        }
    }

    @Test("every code that the engine's errors become is among them")
    func engine() {
        let own: Set<ErrorCode> = [.cannotStart, .databaseLost, .usage, .unknownTask, .wrongState]
        #expect(own.isDisjoint(with: FailureAdvice.codes))
        #expect(Set(FailureAdvice.codes).count == FailureAdvice.codes.count)
    }

    @Test("the advice on a status tells whose fault it is")
    func statuses() {
        func text(_ status: Int) -> String { FailureAdvice.text(for: .http(status), task: "42") }
        #expect(text(404) == "check the URL (dlctl set 42 --url URL), or try again: dlctl retry 42")
        #expect(text(503) == "once the server recovers: dlctl retry 42" && text(429) == text(503))
        #expect(text(400).hasPrefix("check the URL and the options"))
        #expect(text(501).hasPrefix("check the URL and the options") && text(505) == text(501))
    }

    @Test(
        "where a retry alone cannot help, the option that does is named",
        arguments: [
            (ErrorCode.checksumMismatch, "--checksum"), (.checksumMissing, "--checksum"), (.tooLarge, "--max-size"),
            (.nameConflict, "--on-conflict rename"), (.pathNotAllowed, "--directory"), (.dns, "--url"),
        ])
    func options(code: ErrorCode, option: String) {
        let advice = FailureAdvice.text(for: code, tasks: [TaskID(42)])
        #expect(advice.contains("dlctl set 42 \(option)") && advice.hasSuffix(": dlctl retry 42"), "\(advice)")
    }

    @Test("where the server does not answer, the advice says how to try longer")
    func patience() {
        let advice =
            "once the server answers: dlctl retry 42 (after dlctl set 42 --max-attempts 1000 it tries longer)"
        for code in [ErrorCode.connect, .timeout] { #expect(FailureAdvice.text(for: code, task: "42") == advice) }
    }

    @Test("the advice on several tasks names all of them for the retry")
    func several() {
        #expect(
            FailureAdvice.text(for: .http(404), tasks: [TaskID(1), TaskID(2)])
                == "check the URL (dlctl set ID --url URL), or try again: dlctl retry 1 2")
    }

    @Test("where the list of checksums failed, it is the list that is named")
    func list() {
        let message = "the list of checksums at http://h/SUMS: there is no such file on the server (404)"
        let error = TaskFailure(code: ErrorCode(rawValue: "http-404"), message: message)
        #expect(
            FailureAdvice.text(for: error, tasks: [TaskID(42)])
                == "check the list of checksums (dlctl set 42 --checksum-url URL), or try again: dlctl retry 42")
    }
}

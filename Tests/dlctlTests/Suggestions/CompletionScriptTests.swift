import Testing

@testable import dlctl

@Suite struct CompletionScriptTests {
    @Test("bash calls the function that joins words")
    func joining() {
        let script = CompletionScript.text(for: .bash)
        let last = script.split(separator: "\n").last { $0.hasPrefix("complete ") }
        #expect(last == "complete -o filenames -F __dlctl_complete dlctl")
        #expect(script.contains("\n_dlctl() {\n") && script.contains("\n__dlctl_complete() {\n"))
    }
}

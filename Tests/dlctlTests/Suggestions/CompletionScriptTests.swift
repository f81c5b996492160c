import Testing

@testable import dlctl

@Suite struct CompletionScriptTests {
    @Test("zsh takes a value after an equals sign where an option has a value, and nowhere else")
    func equalsSigns() {
        let lines = CompletionScript.text(for: .zsh).split(separator: "\n").map { $0.drop { $0 == " " } }
        for beginning in [
            "'--batch=[", "'*--header=[", "'(--output -o)'{--output=,-o}'[", "'--paused[", "'(-h --help)'{-h,--help}'[",
        ] {
            #expect(lines.contains { $0.hasPrefix(beginning) }, "\(beginning)")
        }
        #expect(!lines.contains { $0.hasSuffix("]'") && $0.contains("=[") })
    }

    @Test("bash calls the function that joins words")
    func joining() {
        let script = CompletionScript.text(for: .bash)
        let last = script.split(separator: "\n").last { $0.hasPrefix("complete ") }
        #expect(last == "complete -o filenames -F __dlctl_complete dlctl")
        #expect(script.contains("\n_dlctl() {\n") && script.contains("\n__dlctl_complete() {\n"))
    }
}

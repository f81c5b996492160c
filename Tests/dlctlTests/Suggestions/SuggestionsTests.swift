import ArgumentParser
import TaskModel
import Testing

@testable import dlctl

@Suite("Words for the completion of a shell") struct SuggestionsTests {
    @Test("the command and the socket are found among options")
    func line() {
        let cases: [([String], String?, String?)] = [
            (["dlctl"], nil, nil), (["dlctl", "pause", ""], "pause", nil),
            (["dlctl", "--socket", "/s", "pause", "1"], "pause", "/s"),
            (["dlctl", "--json", "show", "--socket=/s", ""], "show", "/s"),
            (["dlctl", "show", "--socket"], "show", nil),
        ]
        for (words, command, socket) in cases {
            let suggestions = Suggestions(words: words)
            #expect(suggestions.command == command)
            #expect(suggestions.socket == socket)
        }
    }

    @Test("of an option and its value in one word, the value is completed")
    func value() {
        #expect(Suggestions.value(in: "--batch=ni") == "ni")
        #expect(Suggestions.value(in: "--batch=") == "")
        #expect(Suggestions.value(in: "--search=a=b") == "a=b")
        #expect(Suggestions.value(in: "a=b") == "a=b")
        #expect(Suggestions.value(in: "--batch") == "--batch")
    }

    @Test("only words that every shell takes literally are offered")
    func literal() {
        for text in [
            "", "a b", "$(x)", "`x`", "a;b", "a'b", "a\"b", "~", "a|b", "a&b", "a\\b", "a\nb", "*", "é", "a{b",
        ] {
            #expect(Suggestions.Word(text: text).candidate(for: .bash) == nil, "\(text)")
        }
        #expect(Suggestions.Word(text: "https://a.example:8080/").candidate(for: .bash) == "https://a.example:8080/")
        #expect(Suggestions.Word(text: "https://a/").candidate(for: .zsh) == "https\\://a/")
    }

    @Test("zsh and fish get descriptions, without characters that separate")
    func descriptions() {
        let word = Suggestions.Word(text: "7", description: "active a\tb\u{1B}é")
        #expect(word.candidate(for: .zsh) == "7:active a?b\u{1B}?".replacing("\u{1B}", with: "?"))
        #expect(word.candidate(for: .fish) == "7\tactive a?b??")
        #expect(word.candidate(for: .bash) == "7")
    }
}

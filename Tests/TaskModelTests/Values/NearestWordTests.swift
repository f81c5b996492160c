import Testing

@testable import TaskModel

@Suite("The word that was meant")
struct NearestWordTests {
    private static let words = ["url", "output", "directory", "checksum", "headers", "on-conflict"]

    @Test(
        "a slip of the hand is seen through",
        arguments: [
            ("ouput", "output"), ("outptu", "output"), ("OUTPUT", "output"), ("dir", nil), ("directori", "directory"),
            ("ulr", "url"), ("header", "headers"), ("onconflict", "on-conflict"), ("frobnicate", nil), ("", nil),
        ])
    func nearest(word: String, expected: String?) {
        #expect(NearestWord.to(word, among: Self.words) == expected)
    }

    @Test("of two that are as near, the one first in the alphabet is meant")
    func tie() {
        #expect(NearestWord.to("bat", among: ["rat", "cat"]) == "cat")
        #expect(NearestWord.to("bat", among: []) == nil)
    }

    @Test(
        "insertions, deletions, substitutions and swaps cost one each",
        arguments: [
            ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abd", 1), ("abc", "acb", 1), ("abc", "ab", 1),
            ("kitten", "sitting", 3), ("ABC", "abc", 0), ("ca", "abc", 3),
        ])
    func distance(left: String, right: String, expected: Int) {
        #expect(NearestWord.distance(left, right) == expected)
        #expect(NearestWord.distance(right, left) == expected)
    }
}

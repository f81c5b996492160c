import TaskFiles
import Testing

@Suite("Secrets in files")
struct SecretTextTests {
    @Test("header lines lose their line ends, and empty lines fall away")
    func headers() {
        #expect(SecretText.lines("A: b\r\nC: d\n\n\r\nE: f") == ["A: b", "C: d", "E: f"])
    }

    @Test("a password is the first line, with its spaces")
    func password() {
        #expect(SecretText.password(" geheim \r\nsecond\n") == " geheim ")
        #expect(SecretText.password("") == "")
    }
}

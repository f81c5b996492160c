import TaskModel
import Testing

@Suite("The words of a command line")
struct CommandWordsTests {
    @Test("an option that ends with an equals sign has an empty value, and takes nothing from its neighbour")
    func emptyValue() {
        #expect(
            CommandWords.parted(["add", "--paused", "--batch=", "u1", "-o=", "u2"])
                == ["add", "--paused", "--batch", "", "u1", "-o", "", "u2"])
    }

    @Test(
        "every other word stays as it is",
        arguments: ["--batch=b", "--header=X: a=", "--batch", "-", "-=", "--=", "=", "a=", "http://h/?a=", ""])
    func others(word: String) {
        #expect(CommandWords.parted([word, "x"]) == [word, "x"])
    }

    @Test("what follows a bare -- stays as it is")
    func afterTerminator() {
        #expect(CommandWords.parted(["--key=", "--", "--key="]) == ["--key", "", "--", "--key="])
    }
}

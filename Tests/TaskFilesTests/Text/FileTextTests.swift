import TaskFiles
import Testing

@Suite("Texts of files")
struct FileTextTests {
    @Test("a byte order mark is no part of the text")
    func byteOrderMark() throws {
        #expect(try FileText.decode([0xEF, 0xBB, 0xBF, 0x61], file: "f") == "a")
        #expect(try FileText.decode([], file: "f") == "")
    }

    @Test("a byte that is not UTF-8 is refused with its place")
    func notUTF8() {
        let message = "is not UTF-8 text; dld reads text files only"
        #expect(throws: fault(2, 3, message)) {
            try FileText.decode(Array("a\r\né\u{65}".utf8) + [0xFF], file: "f")
        }
        #expect(throws: fault(1, 1, message)) { try FileText.decode([0xFF, 0x61], file: "f") }
        #expect(throws: FileError.self) { try FileText.decode([0xFF, 0xFE, 0x00, 0xD8], file: "f") }
        #expect(throws: fault(1, 2, message)) { try FileText.decode([0x61, 0xC3], file: "f") }
    }
}

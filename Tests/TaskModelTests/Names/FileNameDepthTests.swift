import Testing

@testable import TaskModel

@Suite("The depth of a directory")
struct FileNameDepthTests {
    @Test("a directory of more levels than are made at a time is refused")
    func depth() throws {
        func directory(_ levels: Int) -> String { [String](repeating: "a", count: levels).joined(separator: "/") }
        try FileName.checkDirectory(directory(FileName.maximumDepth))
        #expect(throws: FieldError.self) { try FileName.checkDirectory(directory(FileName.maximumDepth + 1)) }
    }
}

import Glibc
import TestSupport
import Testing

@testable import dlctl

@Suite("Paths for the daemon")
struct FilePathTests {
    @Test("a directory that begins with a period is beneath the current one; the daemon places other relative ones")
    func directory() throws {
        let here = FilePath.currentDirectory()
        #expect(FilePath.directory("isos") == "isos" && FilePath.directory("/srv/./x") == "/srv/./x")
        #expect(FilePath.directory("") == "")
        let real = try #require(realpath(".", nil).map { String(cString: $0) })
        #expect(FilePath.directory(".") == real && FilePath.directory("./") == real)
        #expect(FilePath.directory("./no/such/../one") == here + "/no/one")
        #expect(FilePath.directory("../../../../../../../../../../nowhere") == "/nowhere")
        if let home = Environment.variables["HOME"] {
            #expect(FilePath.directory("~/a") == home + "/a" && FilePath.directory("~") == home)
        }
        #expect(FilePath.directory(".hidden") == here + "/.hidden")
    }
}

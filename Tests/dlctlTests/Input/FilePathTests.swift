import Glibc
import TestSupport
import Testing

@testable import dlctl

@Suite("Paths for the daemon")
struct FilePathTests {
    @Test("a directory that begins with a period is beneath the current one; the daemon places other relative ones")
    func directory() throws {
        let here = try #require(FilePath.currentDirectory())
        #expect(try FilePath.directory("isos") == "isos" && FilePath.directory("/srv/./x") == "/srv/./x")
        #expect(try FilePath.directory("") == "")
        let real = try #require(realpath(".", nil).map { String(cString: $0) })
        #expect(try FilePath.directory(".") == real && FilePath.directory("./") == real)
        #expect(try FilePath.directory("./no/such/../one") == here + "/no/one")
        #expect(try FilePath.directory("../../../../../../../../../../nowhere") == "/nowhere")
        if let home = Environment.variables["HOME"] {
            #expect(try FilePath.directory("~/a") == home + "/a" && FilePath.directory("~") == home)
        }
        #expect(try FilePath.directory(".hidden") == here + "/.hidden")
    }
}

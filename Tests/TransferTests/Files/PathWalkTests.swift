import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Paths that are followed on behalf of a user")
struct PathWalkTests {
    private static let user = UserIdentity(uid: getuid(), groups: [])

    private func refusal(_ path: String) -> PathWalk.Refusal? {
        do throws(PathWalk.Stop) {
            _ = try PathWalk.follow(path, as: Self.user)
            return nil
        } catch {
            return error.refusal
        }
    }

    @Test("none leads through more than 256 levels")
    func levels() throws {
        let place = try TemporaryDirectory()
        let above = place.path.split(separator: "/").count + 1
        let deepest = 256
        let fits = String(repeating: "d/", count: deepest - above)
        _ = try place.makeDirectory(fits)
        #expect(refusal(place.path + "/" + fits) == nil)
        _ = try place.makeDirectory(fits + "d")
        #expect(refusal(place.path + "/" + fits + "d") == .system(ELOOP))
    }

    @Test("a relative path is invalid, and a path of 4,096 bytes too long")
    func form() {
        #expect(refusal("a/b") == .system(EINVAL))
        #expect(refusal("") == .system(EINVAL))
        #expect(refusal("/" + String(repeating: "a", count: 4_095)) == .system(ENAMETOOLONG))
    }

    @Test("none takes more than 4,096 steps, however its links lead back")
    func steps() throws {
        let place = try TemporaryDirectory()
        let levels = 200
        let bottom = try place.makeDirectory(String(repeating: "d/", count: levels) + "e")
        try #require(symlink(bottom, bottom + "/l") == 0)
        // Each link is a further walk from the root of the file system, and takes the place of the link's own step.
        let walk = bottom.split(separator: "/").count
        let fits = 4_096 / walk - 1
        #expect(fits < 40)
        #expect(refusal(bottom + String(repeating: "/l", count: fits)) == nil)
        #expect(refusal(bottom + String(repeating: "/l", count: fits + 1)) == .system(ELOOP))
        #expect(refusal(bottom + String(repeating: "/l", count: 41)) == .system(ELOOP))
    }
}

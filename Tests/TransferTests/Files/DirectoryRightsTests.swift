import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Rights on directories")
struct DirectoryRightsTests {
    private static let user: UInt32 = 4_294_000_001

    @Test("a user is let through once, and her groups are not looked up again once her number says it")
    func grantTraversal() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path, subdirectory: "")
        guard directory.hasAccessControlLists else { return }
        #expect(chmod(place.path, 0o700) == 0)
        var lookups = 0
        for _ in 0..<3 {
            #expect(
                try directory.grantTraversal(Self.user) {
                    lookups += 1
                    return [Self.user]
                })
        }
        #expect(lookups == 1)
        let status = try directory.descriptor.status()
        let list = try AccessControlList.read(.access, of: directory.descriptor.raw)
        let user = UserIdentity(uid: Self.user, groups: [])
        #expect(user.may(.search, status, list))
        #expect(!user.may(.read, status, list))
    }
}

import FoundationEssentials
import TaskModel
import Testing

@Suite("Secrets")
struct TaskSecretsTests {
    private static func specification() -> TaskSpecification {
        var specification = TaskSpecification(url: "https://me:s3cret@h/a?token=s3cret&b=1")
        specification.headers = ["Authorization: Bearer s3cret", "Cookie: s3cret"]
        specification.user = "me-s3cret"
        specification.password = "s3cret"
        specification.proxy = "http://u:s3cret@proxy:1"
        specification.mirrors = ["http://i/a", "ftp://u:s3cret@i/a", "http://i/a?sig=s3cret"]
        specification.checksumURL = "https://u:s3cret@h/SHA256SUMS"
        specification.referer = "https://u:s3cret@h/a?key=s3cret&c=1"
        specification.cookies = "h\tFALSE\t/\tFALSE\t0\tsession\ts3cret\n"
        specification.form = ["token=s3cret", "s3cret-name=1"]
        specification.output = "a"
        return specification
    }

    @Test("nothing secret remains, and everything comes back")
    func takeAndRestore() throws {
        let original = Self.specification()
        var shown = original
        let secrets = shown.takeSecrets(redactedURL: try TaskAddress(parsing: shown.url).redacted)
        let json = String(decoding: try JSONEncoder().encode(shown), as: UTF8.self)
        #expect(!json.contains("s3cret"))
        #expect(shown.url == "https://h/a?token=REDACTED&b=1")
        #expect(shown.output == "a")
        #expect(shown.mirrors == ["http://i/a", "ftp://i/a", "http://i/a?sig=REDACTED"])
        #expect(shown.checksumURL == "https://h/SHA256SUMS")
        #expect(shown.referer == "https://h/a?key=REDACTED&c=1")

        let kept = try JSONDecoder().decode(TaskSecrets.self, from: JSONEncoder().encode(secrets))
        #expect(kept == secrets && !kept.isEmpty)
        var restored = shown
        restored.restore(kept)
        #expect(restored == original)
    }

    @Test("a task without secrets has none to keep")
    func none() throws {
        var original = TaskSpecification(url: "https://h/a?b=1")
        original.mirrors = ["https://i/a"]
        original.checksumURL = "https://h/SHA256SUMS"
        original.referer = "https://h/?b=1"
        original.fileField = "f"
        var specification = original
        let secrets = specification.takeSecrets(redactedURL: try TaskAddress(parsing: specification.url).redacted)
        #expect(secrets.isEmpty)
        #expect(specification == original)
        specification.restore(secrets)
        #expect(specification == original)
    }

    @Test("one secret alone is kept")
    func one() {
        let fields: [WritableKeyPath<TaskSpecification, String?>] = [\.user, \.password, \.proxy, \.cookies]
        for field in fields {
            var specification = TaskSpecification(url: "https://h/a")
            specification[keyPath: field] = "x"
            let original = specification
            let secrets = specification.takeSecrets(redactedURL: specification.url)
            #expect(!secrets.isEmpty)
            #expect(specification[keyPath: field] == nil)
            specification.restore(secrets)
            #expect(specification == original)
        }
    }
}

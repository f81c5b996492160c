import TaskModel
import Testing

@Suite("Forms, cookies, and what only HTTP knows")
struct TaskSpecificationFormTests {
    private static func field(
        _ url: String = "http://h/a", kind: TaskKind = .upload, _ change: (inout TaskSpecification) -> Void
    ) -> String? {
        var specification = TaskSpecification(kind: kind, url: url)
        if kind == .upload { specification.file = "/f" }
        change(&specification)
        do throws(FieldError) {
            try specification.check()
            return nil
        } catch {
            return error.field
        }
    }

    @Test("either a field or the file's name in it makes an upload a form, which goes by POST")
    func form() {
        var plain = TaskSpecification(kind: .upload, url: "http://h/a")
        #expect(!plain.isForm)
        plain.form = ["a=b"]
        #expect(plain.isForm)
        plain.form = []
        plain.fileField = "f"
        #expect(plain.isForm)
        for method in ["POST", nil] {
            #expect(Self.field { ($0.form, $0.method) = (["a=b"], method) } == nil)
            #expect(Self.field { ($0.fileField, $0.method) = ("f", method) } == nil)
        }
        #expect(Self.field { ($0.form, $0.method) = (["a=b"], "PUT") } == "method")
        #expect(Self.field { ($0.fileField, $0.method) = ("f", "PUT") } == "method")
        #expect(Self.field(kind: .download) { $0.form = ["a=b"] } == "form")
        #expect(Self.field(kind: .download) { $0.fileField = "f" } == "fileField")
    }

    @Test("a field is parted at its first equals sign")
    func parted() throws {
        for (field, name, value) in [("a=b", "a", "b"), ("a=", "a", ""), ("a=b=c\r\n", "a", "b=c\r\n")] {
            let parts = try #require(TaskSpecification.splitField(field))
            #expect(parts.name == name && parts.value == value)
        }
        for field in ["", "a", "=b"] { #expect(TaskSpecification.splitField(field) == nil) }
    }

    @Test("what is no field of a form is named by its number, and shown to nobody")
    func noField() {
        for wrong in [
            "s3cret", "=s3cret", "a\nb=s3cret", "a=s3cret\u{0}", String(repeating: "n", count: 256) + "=s3cret",
        ] {
            var specification = TaskSpecification(kind: .upload, url: "http://h/a")
            specification.file = "/f"
            specification.form = ["a=b", wrong]
            #expect {
                try specification.check()
            } throws: { error in
                let error = error as? FieldError
                return error?.field == "form[1]" && error?.message.contains("s3cret") == false
            }
        }
    }

    @Test("fields have a limit in number and length, and so have cookies")
    func limits() {
        #expect(Self.field { $0.form = Array(repeating: "a=b", count: 256) } == nil)
        #expect(Self.field { $0.form = Array(repeating: "a=b", count: 257) } == "form")
        #expect(Self.field { $0.form = ["a=" + String(repeating: "b", count: 262_142)] } == nil)
        #expect(Self.field { $0.form = ["a=" + String(repeating: "b", count: 262_143)] } == "form")
        #expect(Self.field { $0.fileField = "" } == "fileField")
        #expect(Self.field { $0.fileField = "a\r\nb" } == "fileField")
        #expect(Self.field { $0.cookies = String(repeating: "#", count: 262_144) } == nil)
        #expect(Self.field { $0.cookies = String(repeating: "#", count: 262_145) } == "cookies")
    }

    @Test("cookies and a Cookie header are one too many")
    func cookieTwice() {
        #expect(Self.field { ($0.cookies, $0.headers) = ("#", ["cookie: a=b"]) } == "cookies")
        #expect(Self.field { ($0.cookies, $0.headers) = ("#", ["Cookie2: a=b"]) } == nil)
    }

    @Test("what HTTP alone knows is refused at a file server", arguments: ["ftp", "ftps", "sftp"])
    func fileServers(scheme: String) {
        let url = "\(scheme)://h/a"
        #expect(Self.field(url) { ($0.user, $0.password, $0.limit) = ("u", "p", 5) } == nil)
        #expect(Self.field(url) { $0.method = "PUT" } == "method")
        #expect(Self.field(url) { $0.form = ["a=b"] } == "form")
        #expect(Self.field(url) { $0.fileField = "f" } == "fileField")
        #expect(Self.field(url) { $0.contentType = "text/plain" } == "contentType")
        for kind in TaskKind.allCases {
            #expect(Self.field(url, kind: kind) { $0.headers = ["A: b"] } == "headers")
            #expect(Self.field(url, kind: kind) { $0.cookies = "#" } == "cookies")
            #expect(Self.field(url, kind: kind) { $0.userAgent = "a" } == "userAgent")
            #expect(Self.field(url, kind: kind) { $0.referer = "a" } == "referer")
        }
        // These mirrors and lists of digests are fetched by HTTP.
        #expect(Self.field(url, kind: .download) { ($0.userAgent, $0.mirrors) = ("a", ["http://i/a"]) } == nil)
        #expect(Self.field(url, kind: .download) { ($0.userAgent, $0.checksumURL) = ("a", "http://i/a") } == nil)
    }

    @Test("certificates to trust bring no private key along, which would be kept where it can be read")
    func privateKey() {
        let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
        #expect(Self.field { $0.caCertificates = certificate } == nil)
        #expect(Self.field { $0.caCertificates = certificate + "-----BEGIN PRIVATE KEY-----\n" } == "caCertificates")
    }
}

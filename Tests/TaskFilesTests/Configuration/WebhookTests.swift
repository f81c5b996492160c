import TaskModel
import Testing

@testable import TaskFiles

@Suite("Webhooks of the configuration")
struct WebhookTests {
    private func parse(_ text: String) throws -> [Webhook] {
        try Configuration(
            parsing: text, file: "/etc/dld/dld.yaml",
            readFile: { (path, _) throws(UnreadableFile) in
                switch path {
                case "/etc/dld/key": Array("s3cret\n".utf8)
                case "/run/headers": Array("A: 1\r\nB: 2\n".utf8)
                case "/run/returns": Array("A: 1\rB: 2\n".utf8)
                default: throw UnreadableFile("\(path) does not exist")
                }
            }
        ).notify
    }

    @Test("all keys are read; without `on` it is what ends")
    func keys() throws {
        let webhooks = try parse(
            """
            notify:
              - url: https://u:p@hooks.example.org/x?token=t
                on: [completed, batch-finished]
                batch: nightly
                headers: ["X-A: 1", "@/run/headers"]
                secret: "@key"
              - {url: http://localhost:8080/, on: failed, headers: "C: 3", secret: plain}
              - {url: http://localhost:8080/, batch: b}
            """)
        try #require(webhooks.count == 3)
        #expect(webhooks[0].url == "https://u:p@hooks.example.org/x?token=t")
        #expect(webhooks[0].types == [.completed, .batchFinished] && webhooks[0].batch == "nightly")
        #expect(webhooks[0].headers == ["X-A: 1", "A: 1", "B: 2"] && webhooks[0].secret == "s3cret")
        #expect(webhooks[1].types == [.failed] && webhooks[1].headers == ["C: 3"] && webhooks[1].secret == "plain")
        #expect(webhooks[2].types == [.completed, .failed] && webhooks[2].secret == nil)
        #expect(try parse("notify:").isEmpty)
    }

    @Test(
        "a wrong value is refused where it stands, with what would be right",
        arguments: [
            ("notify: 3", 9, "must be a list of receivers"),
            ("notify: [{on: failed}]", 10, "this entry has no \"url\""),
            ("notify: [{url: ftp://h/x}]", 16, "must begin with http:// or https://"),
            ("notify: [{url: nonsense}]", 16, "\"url\": "),
            ("notify: [{url: http://h/, on: done}]", 31, "\"on\" must be one of added, started, updated"),
            ("notify: [{url: http://h/, on: progress}]", 31, "\"on\" must be one of added, started, updated"),
            ("notify: [{url: http://h/, on: []}]", 31, "names no type of event"),
            ("notify: [{url: http://h/, headers: nonsense}]", 36, "\"headers\": "),
            ("notify: [{url: http://h/, batch: ''}]", 34, "\"batch\" is empty"),
            ("notify: [{url: http://h/, secret: ''}]", 35, "\"secret\" is empty"),
            ("notify: [{url: http://h/, secret: '@'}]", 35, "names no file"),
            ("notify: [{url: http://h/, secret: '@none'}]", 35, "\"secret\": /etc/dld/none does not exist"),
            ("notify: [{url: \"http://h/\\r\\nA: b\"}]", 16, "\"url\": contains a control character"),
            ("notify: [{url: \"http://h/\\0\"}]", 16, "\"url\": contains a control character"),
            (
                "notify: [{url: http://h/, headers: \"A: b\\r\\nC: d\"}]", 36,
                "\"headers\": contains a control character"
            ),
            ("notify: [{url: http://h/, headers: [\"A: b\\nC: d\"]}]", 36, "\"headers\": contains a control character"),
            ("notify: [{url: http://h/, headers: \"A: b\\0\"}]", 36, "\"headers\": contains a control character"),
            ("notify: [{url: http://h/, headers: '@/run/returns'}]", 36, "\"headers\": contains a control character"),
            ("notify: [{url: http://h/, secret: \"a\\nb\"}]", 35, "\"secret\" contains a control character"),
            ("notify: [{url: http://h/, secret: \"a\\0b\"}]", 35, "\"secret\" contains a control character"),
            ("notify: [{url: http://h/, secret: '@/run/returns'}]", 35, "\"secret\" contains a control character"),
            ("notify: [{url: http://h/, batch: \"a\\nb\"}]", 34, "\"batch\" contains a control character"),
            ("notify: [{url: http://h/, retries: 3}]", 27, "\"retries\" is not a key here"),
            ("notify: [{url: http://h/}, {url: http://h/}]", 28, "the same \"url\" and \"batch\" as an earlier one"),
        ])
    func wrong(text: String, column: Int, message: String) {
        let error = #expect(throws: FileError.self) { _ = try parse(text) }
        #expect(error?.column == column)
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }
}

import TaskModel
import Testing

@Suite("What entries of a file leave open")
struct TaskSpecificationFillingTests {
    @Test("an entry of a file keeps its own values and takes the rest from the options")
    func filled() {
        var options = TaskSpecification(url: "")
        options.directory = "isos"
        options.priority = .low
        options.batch = "night"
        options.user = "me"
        options.password = "secret"
        var entry = TaskSpecification(url: "http://a/")
        entry.directory = "own"
        let task = entry.filled(from: options)
        #expect(task.directory == "own")
        #expect(task.priority == .low)
        #expect(task.batch == "night")
        #expect(task.password == "secret")
        entry.user = "other"
        #expect(entry.filled(from: options).password == nil)
        entry.kind = .upload
        entry.directory = nil
        #expect(entry.filled(from: options).directory == nil)
    }

    @Test("what HTTP alone knows is taken by those entries that speak it")
    func filledByProtocol() {
        var options = TaskSpecification(url: "")
        (options.headers, options.cookies, options.userAgent, options.referer) = (["A: b"], "#", "me", "r")
        options.user = "u"
        let web = TaskSpecification(url: "http://a/").filled(from: options)
        #expect(web.headers == ["A: b"] && web.cookies == "#" && web.userAgent == "me" && web.referer == "r")
        let files = TaskSpecification(url: "sftp://a/b").filled(from: options)
        #expect(files.headers.isEmpty && files.cookies == nil && files.userAgent == nil && files.referer == nil)
        #expect(files.user == "u")
    }

    @Test("an upload takes what uploads have, a download the place beneath which its own lies")
    func kinds() {
        var options = TaskSpecification(kind: .upload, url: "")
        options.method = "POST"
        options.contentType = "text/plain"
        var upload = TaskSpecification(kind: .upload, url: "http://a/")
        upload.contentType = "a/b"
        let filled = upload.filled(from: options)
        #expect(filled.method == "POST" && filled.contentType == "a/b")
        var outer = TaskSpecification(url: "")
        outer.directory = "isos"
        outer.metalink = true
        outer.checksumURL = "http://a/SHA256SUMS"
        var entry = TaskSpecification(url: "http://a/")
        entry.directory = "inner"
        let nested = entry.filled(from: outer, nestsDirectory: true)
        #expect(nested.directory == "isos/inner" && nested.metalink && nested.checksumURL == nil)
    }
}

import Testing

@testable import TaskModel

@Suite("Where uploads go")
struct UploadPlaceTests {
    @Test(
        "a URL that ends in a slash is a place for files; a query behind the slash leaves no room for a name",
        arguments: [
            ("https://h/in/", UploadPlace.directory), ("https://h/", .directory), ("ftp://h/in/", .directory),
            ("sftp://me@h/home/me/", .directory), ("https://h/in", .file), ("https://h", .file),
            ("https://h/in?a=b/", .file), ("https://h/in/?a=b", .directoryWithQuery),
            ("https://h/in/#a", .directoryWithQuery), ("https://h/in/?", .directoryWithQuery), ("nowhere/", .file),
            ("https:///", .file), ("", .file),
        ])
    func places(url: String, place: UploadPlace) {
        #expect(UploadPlace(url) == place)
    }

    @Test(
        "a file's name is percent-encoded byte by byte, and its directories are left out",
        arguments: [
            ("/a/b/report.tar", "report.tar"), ("a b%.tar", "a%20b%25.tar"),
            ("/x/ü+&?#;.iso", "%C3%BC%2B%26%3F%23%3B.iso"), ("A-Z_0.9~", "A-Z_0.9~"),
        ])
    func names(path: String, name: String) throws {
        let url = UploadPlace.url(of: path, beneath: "https://h/in/")
        #expect(url == "https://h/in/" + name)
        #expect(try TaskAddress(parsing: url).host == "h")
    }
}

import Testing

@testable import Transfer

@Suite("Web pages in the place of files")
struct MediaTypeDoubtTests {
    @Test("F71: a page is doubted where the name or Accept says that it is none")
    func doubts() {
        func isDoubted(_ type: String?, _ name: String, accept: String? = nil) -> Bool {
            MediaTypeDoubt.warning(type, names: [name], accept: accept) != nil
        }
        for name in ["a.iso", "a.tar.GZ", "b.png", "c.deb"] {
            #expect(isDoubted("text/html", name) && isDoubted("application/xhtml+xml", name), "\(name)")
            #expect(!isDoubted("text/plain", name) && !isDoubted(nil, name), "\(name)")
        }
        for name in ["a", "a.html", "index.php", ".zip", "zip", ""] {
            #expect(!isDoubted("text/html", name), "\(name)")
        }
        for accept in ["image/*", "application/zip, application/gzip;q=0.5"] {
            #expect(isDoubted("text/html", "a", accept: accept), "\(accept)")
        }
        for accept in ["", "*/*", "image/*, */*;q=0.1", "Text/HTML;q=1", "text/*"] {
            #expect(!isDoubted("text/html", "a", accept: accept), "\(accept)")
        }
    }
}

import Testing

@testable import HTTPMessages

@Suite("Validators")
struct ResourceValidatorTests {
    @Test("a strong tag may stand in If-Range; a weak one, or what is no tag, never")
    func tags() {
        #expect(ResourceValidator(entityTag: "\"a\"").ifRange == "\"a\"")
        #expect(ResourceValidator(entityTag: "\"\"").ifRange == "\"\"")
        for tag in ["W/\"a\"", "a", "\"a", "a\"", "\"", "", "w/\"a\""] {
            #expect(ResourceValidator(entityTag: tag).strongEntityTag == nil)
            #expect(ResourceValidator(entityTag: tag).ifRange == nil)
        }
    }

    @Test(
        "a tag that cannot be sent back as it came is not strong",
        arguments: ["\"a\rb\"", "\"a\0b\"", "\"a\u{7F}\"", "\"\u{FFFD}\"", "\"a\"b\"", "\"a b\""])
    func unsendable(tag: String) {
        #expect(ResourceValidator(entityTag: tag).strongEntityTag == nil)
    }

    @Test("a date may stand there only where it is strong and there is no tag")
    func dates() {
        func validator(tag: String? = nil, modified: String, date: String?) -> ResourceValidator {
            ResourceValidator(entityTag: tag, lastModified: modified, date: date)
        }
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(validator(modified: modified, date: "Sun, 06 Nov 1994 08:50:37 GMT").ifRange == modified)
        #expect(validator(modified: modified, date: "Sun, 06 Nov 1994 08:50:36 GMT").ifRange == nil)
        #expect(validator(modified: modified, date: nil).ifRange == nil)
        #expect(validator(modified: "once", date: "Sun, 06 Nov 1994 08:50:37 GMT").ifRange == nil)
        #expect(validator(tag: "W/\"a\"", modified: modified, date: "Sun, 06 Nov 1994 08:50:37 GMT").ifRange == nil)
    }

    @Test("agreement: a strong tag decides, then dates, and silence contradicts nothing")
    func agreement() {
        let strong = ResourceValidator(entityTag: "\"a\"", lastModified: "x")
        #expect(!strong.agrees(with: ResourceValidator(entityTag: "\"a\"", lastModified: "y")))
        #expect(!strong.agrees(with: ResourceValidator(entityTag: "\"b\"", lastModified: "x")))
        #expect(!strong.agrees(with: ResourceValidator(entityTag: "W/\"a\"")))
        #expect(strong.agrees(with: ResourceValidator()))
        #expect(!strong.agrees(with: ResourceValidator(lastModified: "y")))
        let weak = ResourceValidator(entityTag: "W/\"a\"", lastModified: "x")
        #expect(weak.agrees(with: ResourceValidator(entityTag: "W/\"a\"", lastModified: "x")))
        #expect(!weak.agrees(with: ResourceValidator(entityTag: "W/\"b\"", lastModified: "x")))
        #expect(!weak.agrees(with: ResourceValidator(entityTag: "W/\"a\"", lastModified: "y")))
    }

    @Test("a strong tag that stayed while a strong date moved is no proof; dates of the moment say nothing")
    func movedDate() {
        func validator(_ modified: String, _ date: String) -> ResourceValidator {
            ResourceValidator(entityTag: "\"a\"", lastModified: modified, date: date)
        }
        let (old, new) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:59:37 GMT")
        #expect(!validator(old, new).agrees(with: validator(new, new)))
        #expect(!validator(new, new).agrees(with: validator(old, new)))
        #expect(validator(old, new).agrees(with: validator(old, new)))
        #expect(validator(old, old).agrees(with: validator(new, new)))
    }

    @Test("an answer shows a version by the same tag or the same date; silence shows nothing")
    func shown() {
        let validator = ResourceValidator(entityTag: "\"a\"", lastModified: "x")
        #expect(validator.isShown(by: ResourceValidator(entityTag: "\"a\"")))
        #expect(validator.isShown(by: ResourceValidator(lastModified: "x")))
        #expect(!validator.isShown(by: ResourceValidator()))
        #expect(!ResourceValidator(entityTag: "\"a\"").isShown(by: ResourceValidator(lastModified: "x")))
        #expect(!ResourceValidator().isShown(by: ResourceValidator()))
    }
}

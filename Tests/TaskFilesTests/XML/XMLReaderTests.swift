import TaskModel
import Testing

@testable import TaskFiles

@Suite("XML")
struct XMLReaderTests {
    /// Returns the tags and texts of a document as one line: `a[x=1](text)/`.
    private static func outline(_ text: String) throws(FileError) -> String {
        try outline(Array(text.utf8))
    }

    private static func outline(_ bytes: [UInt8]) throws(FileError) -> String {
        var reader = try XMLReader(bytes, file: "f")
        var outline = ""
        while let tag = try reader.next() {
            switch tag {
            case .start(let element):
                outline += element.namespace.isEmpty ? element.name : "{\(element.namespace)}\(element.name)"
                for attribute in element.attributes { outline += "[\(attribute.name)=\(attribute.value)]" }
                outline += " "
                reader.keepsText = true
            case .end:
                let text = String(decoding: reader.text, as: UTF8.self)
                outline += text.isEmpty ? "/" : "(\(text))/"
            }
        }
        return outline
    }

    @Test(
        "well-formed text is read",
        arguments: [
            ("<a/>", "a /"), ("<a></a>", "a /"), ("<a ></a >", "a /"), ("\u{FEFF}<a/>\n<!-- c --> <?p i?>", "a /"),
            ("<?xml version='1.0' encoding=\"UTF-8\" standalone='yes' ?><a/>", "a /"),
            ("<?xml version=\"1.0\" encoding='us-ascii'?>\r\n<a/>", "a /"), ("<a><b/><c/></a>", "a b /c //"),
            ("<a x='1' y = \"2'\"/>", "a [x=1][y=2'] /".replacing("a [", with: "a[")),
            ("<a>x &amp; &lt;y&gt; &quot;&apos;&#65;&#x42;&#x1F600;</a>", "a (x & <y> \"'AB\u{1F600})/"),
            ("<a x='&lt;&#10;&amp;\n\t'/>", "a[x=<\n&  ] /"), ("<a>1\r\n2\r3\n</a>", "a (1\n2\n3\n)/"),
            ("<a><![CDATA[<b>&amp;]]]]><![CDATA[>]]></a>", "a (<b>&amp;]]>)/"),
            ("<a>x<!-- y -->z<?p ?>!</a>", "a (xz!)/"),
            ("<é ö='ü'>ß</é>", "é[ö=ü] (ß)/"), ("<a><![CDATA[]]></a>", "a /"), ("<a>]]</a>", "a (]])/"),
            ("<?xml-stylesheet href='x'?><a/>", "a /"), ("<a xml:lang='en' b='c'/>", "a[b=c] /"),
            ("<a xmlns='u' b='c'><x:d xmlns:x='v' x:e='f'/><d xmlns=''/></a>", "{u}a[b=c] {v}d /d //"),
            ("<a xmlns:x='u'><a xmlns:x='v'><x:b/></a><x:b/></a>", "a a {v}b //{u}b //"),
        ])
    func wellFormed(text: String, outline: String) throws {
        #expect(try Self.outline(text) == outline)
    }

    @Test(
        "what is not well-formed is told with its place",
        arguments: [
            ("", 1, 1, "contains no element"), ("<!-- -->\n", 2, 1, "contains no element"),
            ("x<a/>", 1, 1, "text is not allowed outside the root element"),
            ("<a/>\n x", 2, 2, "text is not allowed outside the root element"),
            ("<a/>&amp;", 1, 5, "text is not allowed outside the root element"),
            ("<a/><b/>", 1, 5, "a document has one root element, and this is a second one"),
            ("<a>", 1, 1, "the element a is not closed"), ("<a><b></b>", 1, 1, "the element a is not closed"),
            ("<a><b></a></b>", 1, 7, "closes a where b must be closed first"),
            ("</a>", 1, 1, "a is closed but was not opened"), ("<a/></a>", 1, 5, "a is closed but was not opened"),
            ("<a", 1, 1, "the tag is not closed"), ("<a></a", 1, 4, "the tag is not closed"),
            ("<a /b>", 1, 4, "a slash here must be followed by >"),
            ("<a x='1'y='2'/>", 1, 9, "a space is missing here"),
            ("<a x='1' x='2'/>", 1, 10, "the attribute x is given twice"),
            ("<a x/>", 1, 5, "an attribute's name must be followed by ="),
            ("<a x=1/>", 1, 6, "an attribute's value must be in quotation marks"),
            ("<a x='1/>", 1, 6, "the value is not closed"),
            ("<a x='<'/>", 1, 7, "an attribute's value must not contain <; write &lt;"),
            ("<a>&b;</a>", 1, 4, "the entity b is not one of the five that XML predefines"),
            ("<a x='&nbsp;'/>", 1, 7, "the entity nbsp is not one of the five that XML predefines"),
            ("<a>a & b</a>", 1, 6, "& must begin a reference; write &amp; for the character &"),
            ("<a>&#0;</a>", 1, 4, "the reference #0 is not a valid character"),
            ("<a>&#xD800;</a>", 1, 4, "the reference #xD800 is not a valid character"),
            ("<a>&#x110000;</a>", 1, 4, "the reference #x110000 is not a valid character"),
            ("<a>&#-65;</a>", 1, 4, "the reference #-65 is not a valid character"),
            ("<a>&#;</a>", 1, 4, "the reference # is not a valid character"),
            ("<a>]]></a>", 1, 4, "]]> is not allowed outside a CDATA section"),
            ("<a><!-- -- --></a>", 1, 9, "a comment must not contain --"),
            ("<a><!-- </a>", 1, 4, "the comment is not closed"),
            ("<!-->\n<a/>", 1, 1, "the comment is not closed"),
            ("<a><![CDATA[x]]</a>", 1, 4, "the CDATA section is not closed"),
            ("<![CDATA[x]]><a/>", 1, 1, "is not XML"), ("<a><!ENTITY x 'y'></a>", 1, 4, "is not XML"),
            ("<a><?p </a>", 1, 4, "the instruction is not closed"),
            (" <?xml version='1.0'?><a/>", 1, 2, "an XML declaration is allowed only at the beginning of a file"),
            ("<a><?XML ?></a>", 1, 4, "an XML declaration is allowed only at the beginning of a file"),
            ("<?xml version='1.0'<a/>", 1, 1, "the XML declaration is not closed"),
            ("<?xml version='1.1'?><a/>", 1, 7, "is not XML 1.0"),
            (
                "<?xml version='1.0' encoding='KOI8-R'?><a/>", 1, 21,
                "the encoding koi8-r is none of UTF-8, UTF-16 and ISO-8859-1"
            ),
            ("<x:a/>", 1, 1, "the prefix of x:a is bound to no namespace"),
            ("<a x:b='c'/>", 1, 4, "the prefix of x:b is bound to no namespace"),
            ("<a xmlns:x=''/>", 1, 4, "a prefix needs a name and a namespace"),
            ("<a:b:c xmlns:a='u'/>", 1, 2, "a:b:c is not a valid name with a prefix"),
            ("<:a/>", 1, 2, ":a is not a valid name with a prefix"),
            ("<1/>", 1, 2, "the name of a tag is missing here; write & and < in text as &amp; and &lt;"),
            ("<a>1 < 2</a>", 1, 7, "the name of a tag is missing here; write & and < in text as &amp; and &lt;"),
            ("<a>\n\u{1}</a>", 2, 1, "contains a control character; dld reads text files only"),
        ])
    func notWellFormed(text: String, line: Int, column: Int, message: String) {
        #expect(throws: fault(line, column, message)) { try Self.outline(text) }
    }

    @Test("A28: there is no document type definition: neither other files nor entities of entities")
    func noDefinition() {
        let message = "is a document type definition, which dld does not accept; remove it"
        let external = "<?xml version='1.0'?>\n<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\n<a>&x;</a>"
        #expect(throws: fault(2, 1, message)) { try Self.outline(external) }
        let laughs = "<!DOCTYPE a [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]><a>&b;</a>"
        #expect(throws: fault(1, 1, message)) { try Self.outline(laughs) }
        #expect(throws: fault(1, 4, message)) { try Self.outline("<a><!DOCTYPE a SYSTEM 'http://h/a.dtd'></a>") }
        #expect(throws: FileError.self) { try Self.outline("<!doctype a><a/>") }
    }

    @Test("bytes that are neither UTF-8 nor what they say are refused")
    func encodings() {
        for bytes: [UInt8] in [
            [0xFF, 0xFE, 0x3C, 0, 0x61], [0xFE, 0xFF, 0xD8, 0, 0, 0x3C], [0x3C, 0, 0x61, 0, 0x2F, 0, 0x3E, 0],
            Array("<a>".utf8) + [0xE4] + Array("</a>".utf8),
            Array("<a>".utf8) + [0xC0, 0xBC] + Array("</a>".utf8), Array("<a>".utf8) + [0xED, 0xA0, 0x80],
        ] {
            #expect(throws: FileError.self) { try Self.outline(bytes) }
        }
    }

    @Test("A28: every length has its limit, and what is at the limit stands")
    func limits() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        _ = try Self.outline(nested(64))
        #expect(throws: fault(1, 193, "elements nest deeper than 64")) { try Self.outline(nested(65)) }
        func attributes(_ count: Int) -> String { "<a" + (0..<count).map { " a\($0)=''" }.joined() + "/>" }
        _ = try Self.outline(attributes(32))
        #expect(throws: FileError.self) { try Self.outline(attributes(33)) }
        func text(_ length: Int) -> String { String(repeating: "x", count: length) }
        _ = try Self.outline("<\(text(256))/>")
        #expect(throws: FileError.self) { try Self.outline("<\(text(257))/>") }
        _ = try Self.outline("<a>\(text(65_536))</a>")
        #expect(throws: FileError.self) { try Self.outline("<a>\(text(65_537))</a>") }
        #expect(throws: FileError.self) { try Self.outline("<a><![CDATA[\(text(65_537))]]></a>") }
        _ = try Self.outline("<a x='\(text(65_536))'/>")
        #expect(throws: FileError.self) { try Self.outline("<a x='\(text(65_537))'/>") }
        let error = #expect(throws: FileError.self) {
            try Self.outline([UInt8](repeating: UInt8(ascii: " "), count: (32 << 20) + 1))
        }
        #expect(error?.code == .tooLarge)
    }

    @Test("text that nobody keeps has no limit but the file's, and does not count against what comes after")
    func unkept() throws {
        let long = String(repeating: "x", count: 200_000)
        var reader = try XMLReader(Array("<a>\(long)<b>y</b>\(long)<c>z</c></a>".utf8), file: "f")
        var texts: [String] = []
        while let tag = try reader.next() {
            switch tag {
            case .start(let element): reader.keepsText = element.name != "a"
            case .end: texts.append(String(decoding: reader.text, as: UTF8.self))
            }
        }
        #expect(texts == ["y", "z", "z"])
    }
}

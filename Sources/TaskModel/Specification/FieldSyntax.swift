/// The way in which people write a field's value on the command line and in files, with the path of the value.
///
/// The readers of the command line, of queue files and of aria2 files know these ways, not the single fields.
package enum FieldSyntax: Sendable {
    /// The URL of the task, which every entry has.
    case url(FieldPath<String>)
    /// A text. `expected` describes it in error messages.
    case text(FieldPath<String?>, expected: String)
    /// A method of an upload.
    case method(FieldPath<String?>)
    /// A path of a local file, which a queue file gives relative to itself.
    case file(FieldPath<String?>)
    /// A list of at least one text.
    case texts(FieldPath<[String]>, expected: String)
    /// A list of at least one line, any of which may be `@FILE` for the lines of a file.
    case lines(FieldPath<[String]>, FieldLines)
    /// The name of a file whose contents are the value.
    case contents(FieldPath<String?>, FieldContents)
    case flag(FieldPath<Bool>)
    case size(FieldPath<Int64?>)
    case rate(FieldPath<Int64?>)
    case count(FieldPath<Int?>, ClosedRange<Int>)
    case connections(FieldPath<ConnectionCount?>)
    case priority(FieldPath<TaskPriority>)
    /// A flag that is short for the priority `now`.
    case now(FieldPath<TaskPriority>)
    case conflict(FieldPath<ConflictPolicy?>)
    /// A length of time, in milliseconds.
    case span(FieldPath<Milliseconds?>)
    case nameSource(FieldPath<NameSource?>)
    /// A point in time. Where it is relative to the time of reading, its text is kept too.
    case time(FieldPath<Milliseconds?>, text: FieldPath<String?>)
    case task(FieldPath<TaskID?>)
    /// The absence of a syntax: the value comes by JSON or from the daemon itself.
    case none
}

/// The lines that a field consists of.
package enum FieldLines: Sendable {
    case headers, form

    package var expected: String {
        switch self {
        case .headers: "\"Name: value\""
        case .form: "\"NAME=VALUE\""
        }
    }
}

/// The text that a field takes from a file.
package enum FieldContents: Sendable {
    /// The first line.
    case password
    case cookies, certificates, netrc
}

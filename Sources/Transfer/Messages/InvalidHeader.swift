/// A header field, as text, that HTTP does not permit.
struct InvalidHeader: Sendable {
    var name: String
    var value: String
    /// The reason why there is no value.
    var refusal: String?
}

/// How many connections one task may use at a time. In JSON and in text a whole number, or `auto`.
public enum ConnectionCount: Sendable, Hashable {
    /// As many as pay, at most the upper end of ``bounds``.
    case auto
    case exactly(Int)

    /// What a number may be at least and at most.
    public static let bounds = 1...16
    /// What a value must be, for messages.
    package static let expectation = "auto or a whole number from \(bounds.lowerBound) to \(bounds.upperBound)"

    /// - Throws: ``FieldError`` for `field`.
    func check(field: String) throws(FieldError) {
        if case .exactly(let count) = self, !Self.bounds.contains(count) {
            throw FieldError(field: field, message: "must be \(Self.expectation)")
        }
    }
}

extension ConnectionCount: LosslessStringConvertible {
    /// - Returns: `nil` where the text is neither `auto` nor a number within ``bounds``.
    public init?(_ text: String) {
        if text == "auto" {
            self = .auto
        } else {
            guard text.utf8.allSatisfy(\.isDigit), let count = Int(text), Self.bounds.contains(count) else {
                return nil
            }
            self = .exactly(count)
        }
    }

    public var description: String {
        switch self {
        case .auto: "auto"
        case .exactly(let count): "\(count)"
        }
    }
}

extension ConnectionCount: Codable {
    /// Takes any number: whether it is within ``bounds`` is the specification's to judge.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let count = try? container.decode(Int.self) {
            self = .exactly(count)
        } else {
            guard try container.decode(String.self) == "auto" else {
                throw FieldError(field: "connections", message: "must be \(Self.expectation)")
            }
            self = .auto
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .auto: try container.encode("auto")
        case .exactly(let count): try container.encode(count)
        }
    }
}

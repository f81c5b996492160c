/// The maximum number of concurrent connections of one task. The JSON and text form is a whole number or `auto`.
public enum ConnectionCount: Sendable, Hashable {
    /// A number that the engine chooses: as many connections as raise the throughput, at most the upper bound of
    /// ``bounds``.
    case auto
    case exactly(Int)

    /// The allowed range of an explicit number.
    public static let bounds = 1...16
    /// A description of the valid values, for error messages.
    package static let expectation = "auto or a whole number from \(bounds.lowerBound) to \(bounds.upperBound)"

    /// Checks that an explicit number is within ``bounds``.
    ///
    /// - Throws: ``FieldError`` for `field`.
    func check(field: String) throws(FieldError) {
        if case .exactly(let count) = self, !Self.bounds.contains(count) {
            throw FieldError(field: field, message: "must be \(Self.expectation)")
        }
    }
}

extension ConnectionCount: LosslessStringConvertible {
    /// Parses `auto` or a decimal number.
    ///
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
    /// Accepts any whole number. The task specification checks that it is within ``bounds``.
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

/// A task's number. It is assigned once and never reused.
public struct TaskID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Creates an id from its number.
    public init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    public var description: String { String(rawValue) }

    public static func < (left: TaskID, right: TaskID) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension TaskID: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        do {
            rawValue = try container.decode(Int64.self)
        } catch let error as DecodingError {
            throw error
        } catch {
            // For a value such as 1.5, Foundation's decoder reports that it does not fit, but not its coding path.
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "is not a whole number")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// Milliseconds since 1970, the unit of every stored and reported time.
public typealias Milliseconds = Int64

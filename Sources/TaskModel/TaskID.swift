/// A task's number: given once, never reused.
public struct TaskID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    public let rawValue: Int64

    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

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
            // Foundation's decoder says of 1.5 that it does not fit, and not where it stands.
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "is not a whole number")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}

/// Milliseconds since 1970: how every time is stored and told.
public typealias Milliseconds = Int64

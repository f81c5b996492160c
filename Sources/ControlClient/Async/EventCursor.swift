/// A place in the journal of events, which an app keeps to go on there later.
///
/// Its text has the form `JOURNAL:SEQUENCE`.
public struct EventCursor: Sendable, Hashable, Codable, LosslessStringConvertible {
    /// The name of the journal; a database that was lost or restored from a backup has another one.
    public let journal: String
    /// The sequence number of the last event that was handled.
    public let sequence: Int64

    /// Creates a place after the event `sequence` of a journal.
    public init(journal: String, sequence: Int64) {
        self.journal = journal
        self.sequence = sequence
    }

    public init?(_ description: String) {
        let parts = description.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let sequence = Int64(parts[1]) else { return nil }
        self.init(journal: String(parts[0]), sequence: sequence)
    }

    public var description: String { "\(journal):\(sequence)" }

    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let cursor = Self(text) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "\"\(text)\" is not a cursor of events"))
        }
        self = cursor
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

import GRDB
import TaskModel

/// The result of applying a staged batch, stored in the commit that applied it. A caller that does not know whether the
/// commit took place looks up the receipt by a name of its choice before it applies the same staged batch again.
package struct StagedBatchReceipt: Codable, Sendable, Equatable {
    package var added = 0
    package var updated = 0
    package var unchanged = 0
    /// The first and last ids of ranges of consecutive added tasks, in the order of their entries; at most
    /// ``maximumRanges`` ranges.
    package var ids: [[Int64]] = []

    package static let maximumRanges = 1_000

    package init() {}

    init(_ outcome: StagedBatchOutcome) {
        added = outcome.added
        updated = outcome.updated
        unchanged = outcome.unchanged
        ids = outcome.idRanges.prefix(Self.maximumRanges).map { [$0.lowerBound, $0.upperBound] }
    }
}

extension TaskStore {
    /// Returns the receipt with the given name; `nil` if no staged batch was applied under that name.
    package func receipt(_ name: String) throws(StoreError) -> StagedBatchReceipt? {
        let text = try read { database in
            try database.firstRow("SELECT value FROM meta WHERE name = ?", [Database.receiptPrefix + name]) {
                try $0.text(0)
            }
        }
        return try text.map { text throws(StoreError) in try StoredJSON.decode(StagedBatchReceipt.self, from: text) }
    }

    /// Returns the names of receipts that have the given prefix.
    package func receipts(beginningWith prefix: String) throws(StoreError) -> [String] {
        let names = try read { database in
            try database.rows(
                "SELECT name FROM meta WHERE substr(name, 1, ?) = ?",
                [
                    (Database.receiptPrefix + prefix).unicodeScalars.count, Database.receiptPrefix + prefix,
                ]
            ) { try $0.text(0) }
        }
        return names.map { String($0.dropFirst(Database.receiptPrefix.count)) }
    }

    /// Removes receipts; a receipt that does not exist is not an error.
    package func removeReceipts(_ names: [String]) async throws(StoreError) {
        guard !names.isEmpty else { return }
        try await writes.perform(weight: names.count) { database in
            for name in names { try database.run("DELETE FROM meta WHERE name = ?", [Database.receiptPrefix + name]) }
        }
    }
}

extension Database {
    fileprivate static let receiptPrefix = "receipt:"

    func hasReceipt(_ name: String) throws -> Bool {
        try firstRow("SELECT 1 FROM meta WHERE name = ?", [Self.receiptPrefix + name]) { _ in true } ?? false
    }

    func write(_ receipt: StagedBatchReceipt, named name: String) throws {
        try run(
            "INSERT INTO meta (name, value) VALUES (?, ?)",
            [Self.receiptPrefix + name, try StoredJSON.encode(receipt)])
    }
}

import GRDB
import TaskModel

/// The SQL statements for the size of owners' task records. Each accesses a single row by the owner's uid.
enum OwnerRecordsSQL {
    static let sum = "SELECT record_bytes FROM owner_total WHERE owner = ?"
    static let add = """
        INSERT INTO owner_total (owner, record_bytes) VALUES (?, ?)
        ON CONFLICT (owner) DO UPDATE SET \(Schema.adding("+ excluded.record_bytes", to: "record_bytes"))
        """
}

extension FreshTask {
    /// The number of bytes of the texts in the task's row.
    var rowBytes: Int64 { entry.bytes.addingClamped(Int64(path?.utf8.count ?? 0)) }

    /// The number of bytes of all the task's data as staged.
    var stagedBytes: Int64 {
        rowBytes.addingClamped(Int64(entry.batch?.utf8.count ?? 0)).addingClamped(Int64(secrets?.utf8.count ?? 0))
            .addingClamped(Int64(pieceHashes?.hashes.count ?? 0))
    }
}

extension StoredEntry {
    /// The number of bytes of the texts in the columns.
    var bytes: Int64 {
        [url, output, directory, key, specification].reduce(0 as Int64) { $0.addingClamped(Int64($1?.utf8.count ?? 0)) }
    }
}

extension TaskStore {
    /// Returns the number of bytes that the records of an owner's tasks take up.
    package func recordBytes(of owner: UInt32) throws(StoreError) -> Int64 {
        try read { try $0.recordBytes(of: owner) }
    }
}

extension Database {
    fileprivate func recordBytes(of owner: UInt32) throws -> Int64 {
        try firstRow(OwnerRecordsSQL.sum, [owner]) { try $0.integer(0) } ?? 0
    }

    /// Adds the record bytes of inserted tasks to their owner's total.
    func addRecordBytes(_ bytes: Int64, of owner: UInt32) throws {
        try run(OwnerRecordsSQL.add, [owner, bytes])
    }

    /// Performs `body` and throws if it makes an owner's records larger than the quota allows.
    ///
    /// A change that does not enlarge the records is accepted even if they already exceed the quota.
    ///
    /// - Parameter room: checks whether the disk has room for more; called if some owner's records have grown.
    /// - Throws: ``StoreError/quota(_:)``, and the errors of `room`. The caller must roll back the changes.
    func keepingRecords<Value>(
        of owners: Set<UInt32>, within quota: Quota, room: () throws -> Void, _ body: () throws -> Value
    ) throws -> Value {
        let before = try owners.sorted().map { (owner: $0, bytes: try recordBytes(of: $0)) }
        let value = try body()
        for (owner, bytes) in before {
            let grown = try recordBytes(of: owner)
            guard grown > bytes else { continue }
            try quota.check(records: grown)
            try room()
        }
        return value
    }
}

extension Quota {
    /// Checks the size of one owner's records.
    ///
    /// - Throws: ``StoreError/quota(_:)``.
    func check(records bytes: Int64) throws(StoreError) {
        guard bytes > recordsPerOwner else { return }
        throw .quota(
            "the tasks of one owner would need \(bytes) bytes in the database (URLs, header fields, cookies, forms and "
                + "so on), more than the limit of \(recordsPerOwner) bytes; remove some tasks, or raise "
                + "limits.records-per-owner")
    }
}

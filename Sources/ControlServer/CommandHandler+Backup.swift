import ControlProtocol
import FoundationEssentials
import TaskModel
import TaskQueue

extension CommandHandler {
    static func requireForBackup(_ caller: Caller) throws(RPCError) {
        try require(caller, to: "back up the database, since it contains every user's tasks and passwords")
    }

    func backUp(for client: HeldBackup) async throws(QueueError) -> DaemonBackupResult {
        let facts = try await queue.backUp(for: client)
        return DaemonBackupResult(
            bytes: facts.bytes, tasks: facts.tasks, lastEvent: facts.lastEvent, journal: facts.journal)
    }

    static func read(_ parameters: BackupReadParameters, of backup: HeldBackup) throws -> BackupReadResult {
        guard let size = backup.facts?.bytes else {
            throw RPCError.refused(.wrongState, "this connection has no backup; call daemon.backup on it first")
        }
        guard 0...size ~= parameters.offset else {
            throw RPCError(FieldError(field: "offset", message: "must be from 0 to \(size)"))
        }
        let count = min(Int64(BackupReadParameters.partSize), size - parameters.offset)
        let bytes = try backup.read(at: parameters.offset, count: Int(count))
        guard bytes.count == count else {
            throw RPCError.refused(.io, "the copy of the database is shorter than it was; make another backup")
        }
        let next = parameters.offset + count
        return BackupReadResult(data: Data(bytes).base64EncodedString(), next: next < size ? next : nil)
    }
}

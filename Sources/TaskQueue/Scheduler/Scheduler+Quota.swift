import Logging
import TaskModel
import TaskStore
import Transfer

/// The disk space used by the downloads of each owner.
package struct StorageUse: Sendable, Equatable {
    package struct Owner: Sendable, Equatable {
        package var owner: UInt32
        /// The used bytes, including those reserved in advance for running downloads.
        package var bytes: Int64
    }

    /// The quota of one owner in bytes; `nil` for unlimited.
    package var limit: Int64?
    /// The owners, in descending order of bytes.
    package var owners: [Owner]
}

extension Scheduler {
    /// The maximum number of owners that ``storageUse(owner:)`` reports.
    private static let ownersTold = 100

    /// Releases tasks that wait for their owner's quota, as far as they fit.
    ///
    /// - Parameters:
    ///   - owners: the owners to consider; `nil` for all owners with a waiting task.
    ///   - all: Whether to release also started tasks of unknown size.
    func settleQuotas(of owners: Set<UInt32>? = nil, all: Bool) async {
        do throws(StoreError) {
            var released = 0
            if allowances.limit == nil {
                released = owners == nil ? try await store.release(waitingFor: .quota) : 0
                notices.quotaHasRoom(of: nil)
            } else {
                let waiting = owners == nil ? try store.ownersOverQuota() : []
                for owner in owners ?? Set(waiting) {
                    guard let room = try allowances.room(of: owner) else { continue }
                    let count = try await store.releaseOverQuota(of: owner, room: room, all: all)
                    if count > 0 { notices.quotaHasRoom(of: owner) }
                    released += count
                }
            }
            if released > 0 {
                running.countChange()
                chooser.invalidate()
            }
        } catch {
            if error != .closed {
                logger.error("cannot release tasks that wait for their quota", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Releases tasks after others were removed or the quota was changed; see ``settleQuotas(of:all:)``.
    func quotaChanged(for owners: Set<UInt32>? = nil) async {
        if let owners, owners.isEmpty { return }
        await settleQuotas(of: owners, all: true)
        wake()
    }

    /// Returns the disk space in use.
    ///
    /// - Parameter owner: the only owner to report; `nil` for all owners.
    func storageUse(owner: UInt32?) throws(StoreError) -> StorageUse {
        var owners: [StorageUse.Owner] = []
        for found in try store.bytesByOwner(owner, limit: Self.ownersTold) {
            owners.append(.init(owner: found.owner, bytes: try allowances.used(by: found.owner)))
        }
        return StorageUse(limit: allowances.limit, owners: owners.sorted { $0.bytes > $1.bytes })
    }
}

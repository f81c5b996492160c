import Logging
import TaskModel
import TaskStore
import Transfer

/// The bytes that owners' downloads take up.
package struct StorageUse: Sendable, Equatable {
    package struct Owner: Sendable, Equatable {
        package var owner: UInt32
        /// With those that have been taken beforehand for downloads that run.
        package var bytes: Int64
    }

    /// Bytes that one owner's may; `nil`: any number.
    package var limit: Int64?
    /// The owners, the one with the most bytes first.
    package var owners: [Owner]
}

extension Scheduler {
    /// Owners of whom ``storageUse(owner:)`` tells at most.
    private static let ownersTold = 100

    /// Room was made: what waits for it goes on where it fits.
    ///
    /// - Parameters:
    ///   - owners: of whom; `nil`: whoever has something that waits.
    ///   - all: also what was begun and needs nobody knows how much.
    func settleQuotas(of owners: Set<UInt32>? = nil, all: Bool) async {
        do throws(StoreError) {
            var released = 0
            if allowances.limit == nil {
                released = owners == nil ? try await store.release(waitingFor: .quota) : 0
                ownersAtQuota = []
            } else {
                let waiting = owners == nil ? try store.ownersOverQuota() : []
                for owner in owners ?? Set(waiting) {
                    guard let room = try allowances.room(of: owner) else { continue }
                    let count = try await store.releaseOverQuota(of: owner, room: room, all: all)
                    if count > 0 { ownersAtQuota.remove(owner) }
                    released += count
                }
            }
            if released > 0 { chooser.invalidate() }
        } catch {
            if error != .closed {
                logger.error("cannot release tasks that wait for room", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Tasks were removed, or what owners may have is another number: see ``settleQuotas(of:all:)``.
    func roomWasMade(for owners: Set<UInt32>? = nil) async {
        if let owners, owners.isEmpty { return }
        await settleQuotas(of: owners, all: true)
        wake()
    }

    /// - Parameter owner: only this one's; `nil`: everyone's.
    func storageUse(owner: UInt32?) throws(StoreError) -> StorageUse {
        var owners: [StorageUse.Owner] = []
        for found in try store.bytesByOwner(owner, limit: Self.ownersTold) {
            owners.append(.init(owner: found.owner, bytes: try allowances.used(by: found.owner)))
        }
        return StorageUse(limit: allowances.limit, owners: owners.sorted { $0.bytes > $1.bytes })
    }
}

import Synchronization

/// The number of copies of the database that exist at the same time, each of which takes up as much disk space as the
/// database.
final class BackupPlaces: Sendable {
    static let limit = 4

    private let taken = Mutex(0)

    /// A place, which is free again when the last reference is gone.
    final class Place: Sendable {
        private let places: BackupPlaces

        fileprivate init(_ places: BackupPlaces) { self.places = places }

        deinit { places.taken.withLock { $0 -= 1 } }
    }

    /// - Throws: ``StoreError/quota(_:)`` if all places are taken.
    func take() throws(StoreError) -> Place {
        let isFree = taken.withLock { taken in
            guard taken < Self.limit else { return false }
            taken += 1
            return true
        }
        guard isFree else {
            throw .quota(
                "\(Self.limit) backups are already being made or fetched; try again when one of them is complete")
        }
        return Place(self)
    }
}

import Logging
import TaskModel
import TaskStore

/// Checks of directories with a time limit.
extension TaskQueue {
    /// The maximum number of directories of which a warning tells.
    private static let mostWarnings = 10

    /// Checks whether the daemon can use directories, each for its purpose.
    ///
    /// - Returns: the problems, in the order of the places; `nil` for all where the result is not known in time.
    package func problems(
        with places: [(path: String, use: PlaceUse)], _ inspector: PlaceInspector
    ) async -> [PlaceProblem?] {
        let places = places.map { ($0.path, $0.use) }
        return await placeGuard.evaluate { places.map { inspector.problem(with: $0.0, for: $0.1) } }
            ?? places.map { _ in nil }
    }

    /// Returns the warnings of ``LayoutWarning/texts(_:)`` with a short time limit; none where the limit is exceeded.
    package func layoutWarnings(_ settings: QueueSettings) async -> [String] {
        await placeGuard.evaluate { LayoutWarning.texts(settings) } ?? []
    }

    /// Stores where downloads will be after a change of the directories for downloads.
    ///
    /// - Returns: warnings about downloads whose part files are in another directory now.
    func updatePaths(_ settings: QueueSettings) async -> [String] {
        let places = [settings.downloadDirectory, settings.layout.rawValue, "\(settings.daemonUser)"]
        let running = await onSharedThreads { [scheduler] in await scheduler.runningIDs }
        do throws(StoreError) {
            let left = try await store.updatePaths(
                for: (places + settings.downloadRoots).joined(separator: "\n"), running: running
            ) { directory, owner in
                (try? DownloadPlace(directory: directory, owner: owner, settings: settings))?.path
            }
            return left.sorted { $0.key < $1.key }.prefix(Self.mostWarnings).map { directory, count in
                let found =
                    count == 1
                    ? "file of 1 download was in \(directory) and is"
                    : "files of \(count) downloads were in \(directory) and are"
                return "the part \(found) looked for in the new directory: move .dld-*.part there while the daemon is "
                    + "stopped, or set the earlier directory again; otherwise \(count == 1 ? "it begins" : "they begin") "
                    + "anew, and a running one when it is interrupted"
            }
        } catch {
            logger.error("cannot update the paths of downloads", metadata: ["error": "\(error)"])
            return []
        }
    }
}

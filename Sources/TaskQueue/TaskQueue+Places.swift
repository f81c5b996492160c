import Logging
import TaskModel
import TaskStore

/// Checks of directories with a time limit.
extension TaskQueue {
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
    func updatePaths() async {
        let settings = settings
        let places = [settings.downloadDirectory, settings.layout.rawValue, "\(settings.daemonUser)"]
        let running = await onSharedThreads { [scheduler] in await scheduler.runningIDs }
        do throws(StoreError) {
            try await store.updatePaths(
                for: (places + settings.downloadRoots).joined(separator: "\n"), excluding: running
            ) { directory, owner in
                (try? DownloadPlace(directory: directory, owner: owner, settings: settings))?.path
            }
        } catch {
            logger.error("cannot update the paths of downloads", metadata: ["error": "\(error)"])
        }
    }
}

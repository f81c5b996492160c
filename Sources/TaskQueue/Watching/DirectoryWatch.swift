import Glibc
import Logging
import TaskFiles
import TaskModel
import Transfer

/// Watches over one directory: waits for it to be there, for news of it, and for the moment of the next look.
struct DirectoryWatch: Sendable {
    let intake: DropIntake
    /// Begins to listen at a path, where that can be done.
    var listen: @Sendable (_ path: String, _ onNews: @escaping @Sendable () -> Void) -> DirectoryEvents? = {
        DirectoryEvents(of: $0, onNews: $1)
    }

    /// Milliseconds from one look for a directory that is not there to the next.
    static let patience: Milliseconds = 30_000

    private var clock: QueueClock { intake.clock }
    private var path: String { intake.watch.directory }

    /// Returns when the Swift task is cancelled.
    func run() async {
        // Said once, until something else is the matter.
        var complaint: String?
        while !Task.isCancelled {
            do throws(TransferError) {
                let directory = try await open()
                complaint = nil
                try await watch(over: directory)
            } catch {
                if complaint != error.message {
                    intake.logger.warning(
                        "a watched directory cannot be used; it is tried again now and then",
                        metadata: ["directory": "\(path)", "reason": "\(error.message)"])
                }
                complaint = error.message
                await clock.sleep(Self.patience)
            }
        }
    }

    private func open() async throws(TransferError) -> Directory {
        let (path, settings) = (path, intake.queue.settings)
        return try await intake.work.attempt { () throws(TransferError) in
            // Nothing is queued that could not be moved away.
            if let problem = settings.inspector.problem(with: path, for: .watch) {
                throw TransferError(.io, problem.description, systemError: problem.systemError)
            }
            let directory = try Directory.open(root: path)
            // Whatever a server sends would be queued in the name of the daemon's own user.
            guard !Self.isWhereDownloadsGo(path, settings) else {
                throw TransferError(.pathNotAllowed, Self.whyNot)
            }
            return directory
        }
    }

    static let whyNot =
        "downloads may go there, and servers would say what is queued; watch a directory that lies beneath none of "
        + "downloads.roots"

    static func isWhereDownloadsGo(_ path: String, _ settings: QueueSettings) -> Bool {
        PlaceInspector.lies(
            resolved(path), beneath: (settings.downloadRoots + [settings.downloadDirectory]).map(resolved))
    }

    /// Without links, where it exists.
    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// Returns when the directory is gone from its path, or the Swift task is cancelled.
    private func watch(over directory: Directory) async throws(TransferError) {
        let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        // First the listening, then the first look: what comes between the two is told.
        let events = listen(directory.pathOfDescriptor) { wake.yield() }
        let polls = events == nil || directory.isOnAnotherMachine
        intake.logger.debug("watching", metadata: ["directory": "\(path)", "polls": "\(polls)"])
        var round = DropRound(directory: directory, intake: intake, polls: polls)
        let alarm = Alarm(clock) { wake.yield() }
        defer { alarm.cancel() }
        var isFirst = true
        wake.yield()
        for await _ in wakes {
            let news = events?.take() ?? DirectoryEvents.News()
            let rings = alarm.hasRung()
            if news.isGone { return }
            if polls {
                // No one tells that another file system is mounted there.
                guard await isInPlace(directory) else { return }
            }
            let scope: DropRound.Scope =
                isFirst || news.isCut || (polls && rings) ? .all : rings ? .known : .told
            isFirst = false
            let wait = try await round.look(closed: news.closed, scope)
            if let wait { alarm.set(wait) }
        }
    }

    private func isInPlace(_ directory: Directory) async -> Bool {
        let path = path
        return await intake.work.run { Inode.at(path) == directory.inode }
    }
}

import Glibc
import Logging
import TaskFiles
import TaskModel
import Transfer

/// A watch on one directory. It waits for the directory to exist, for events and for the time of the next scan.
struct DirectoryWatch: Sendable {
    let intake: DropIntake
    /// Starts listening to a path; returns `nil` where that is not possible.
    var listen: @Sendable (_ path: String, _ onChange: @escaping @Sendable () -> Void) -> DirectoryEvents? = {
        DirectoryEvents(of: $0, onChange: $1)
    }

    /// The interval between checks for a missing directory, in milliseconds.
    static let retryInterval: Milliseconds = 30_000

    private var clock: QueueClock { intake.clock }
    private var path: String { intake.watch.directory }

    /// Watches the directory until the Swift task is cancelled.
    func run() async {
        // Each problem is logged once, until a different one occurs.
        var lastProblem: String?
        while !Task.isCancelled {
            do throws(TransferError) {
                let directory = try await open()
                lastProblem = nil
                try await watch(over: directory)
            } catch {
                if lastProblem != error.message {
                    intake.logger.warning(
                        "a watched directory cannot be used; it is tried again periodically",
                        metadata: ["directory": "\(path)", "reason": "\(error.message)"])
                }
                lastProblem = error.message
                await clock.sleep(Self.retryInterval)
            }
        }
    }

    private func open() async throws(TransferError) -> Directory {
        let (path, settings) = (path, intake.queue.settings)
        return try await intake.work.attempt { () throws(TransferError) in
            // The daemon queues no file that it could not move away afterwards.
            if let problem = settings.inspector.problem(with: path, for: .watch) {
                throw TransferError(.io, problem.description, systemError: problem.systemError)
            }
            let directory = try Directory.open(root: path)
            // Otherwise files sent by servers would be queued on behalf of the daemon's own user.
            guard !Self.isWhereDownloadsGo(path, settings) else {
                throw TransferError(.pathNotAllowed, Self.whyNot)
            }
            return directory
        }
    }

    static let whyNot =
        "downloads may be stored there, so servers could decide what is queued; watch a directory that is not below "
        + "downloads.roots"

    static func isWhereDownloadsGo(_ path: String, _ settings: QueueSettings) -> Bool {
        PlaceInspector.lies(
            resolved(path), beneath: (settings.downloadRoots + [settings.downloadDirectory]).map(resolved))
    }

    /// Returns the path without symbolic links, where it exists.
    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// Watches the open directory until its path no longer leads to it, or the Swift task is cancelled.
    private func watch(over directory: Directory) async throws(TransferError) {
        let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        // Listening starts before the first scan, so that events in between are not lost.
        let events = listen(directory.pathOfDescriptor) { wake.yield() }
        let polls = events == nil || directory.isOnAnotherMachine
        intake.logger.debug("watching", metadata: ["directory": "\(path)", "polls": "\(polls)"])
        var round = DropRound(directory: directory, intake: intake, polls: polls)
        let alarm = Alarm(clock) { wake.yield() }
        defer { alarm.cancel() }
        var isFirst = true
        wake.yield()
        for await _ in wakes {
            let changes = events?.drain() ?? DirectoryEvents.Changes()
            let isDue = alarm.hasFired()
            if changes.isGone { return }
            if polls {
                // Without complete events, a file system mounted over the directory goes unnoticed.
                guard await isInPlace(directory) else { return }
            }
            let scope: DropRound.Scope =
                isFirst || changes.isCut || (polls && isDue) ? .all : isDue ? .known : .named
            isFirst = false
            let wait = try await round.process(closed: changes.closed, scope)
            if let wait { alarm.set(wait) }
        }
    }

    private func isInPlace(_ directory: Directory) async -> Bool {
        let path = path
        return await intake.work.run { Inode.at(path) == directory.inode }
    }
}

package import ControlProtocol
import TaskModel
import TaskQueue

/// `daemon.status`, which people and monitors ask for often.
extension CommandHandler {
    package func resultAtHand(of command: Command, for peer: Peer) -> EncodedResult? {
        guard case .daemonStatus(let parameters) = command, parameters.metrics != true else { return nil }
        let (answer, isDueAnew) = statuses.answer(for: peer, change: queue.changes.value)
        if isDueAnew {
            Task {
                // A failure is told to the next caller, who then finds no answer at hand.
                do { _ = try await status(for: peer, parameters) } catch { statuses.forget(peer) }
            }
        }
        return answer
    }

    func status(for peer: Peer, _ parameters: DaemonStatusParameters) async throws -> EncodedResult {
        if parameters.metrics == true {
            let caller = caller(peer)
            var status = try await status(caller)
            // Answers with metrics are not kept: they are long, and few ask for them.
            if caller.isAdministrator { status.metrics = await metrics() }
            return try EncodedResult(status)
        }
        // The count is read first: what changes meanwhile makes the answer outdated.
        let change = queue.changes.value
        let answer = try EncodedResult(await status(caller(peer)))
        statuses.keep(answer, for: peer, change: change)
        return answer
    }

    private func status(_ caller: Caller) async throws -> DaemonStatus {
        let description = await description()
        let rates = await queue.rates()
        let waiting = try await queue.waitingCauses(for: caller)
        let storage = try await queue.storageUse(for: caller)
        return DaemonStatus(
            version: description.version, pid: description.pid, uptime: description.uptime, socket: description.socket,
            stateDirectory: description.stateDirectory, downloadDirectory: description.downloadDirectory,
            libcurl: description.libcurl,
            tasks: Self.byName(try await queue.counts(for: caller)), downloadRate: rates.download,
            uploadRate: rates.upload, lastEvent: try queue.lastEvent(),
            internalFaults: queue.internalFaults,
            schedulePause: await queue.schedulePause().map { .init(until: $0.until) },
            waiting: .init(
                counted: waiting.counted,
                causes: waiting.causes.map {
                    .init(
                        reason: $0.reason, code: $0.code, message: $0.message, tasks: $0.tasks,
                        notBefore: $0.notBefore)
                }),
            storage: .init(
                limit: storage.limit, owners: storage.owners.map { .init(owner: $0.owner, bytes: $0.bytes) }),
            problems: caller.isAdministrator ? await problems() : [],
            webhooks: caller.isAdministrator ? await queue.webhookStatuses.map(DaemonStatus.Webhook.init) : [],
            configurationFile: description.configurationFile,
            limits: await limitsInForce(),
            disks: await queue.diskRooms().map {
                .init(path: $0.path, free: $0.free, total: $0.total, minimumFree: queue.minimumFree(on: $0))
            },
            hosts: try await queue.heldHosts(for: caller).map {
                .init(host: $0.host, reason: $0.cause.rawValue, owner: $0.owner, until: $0.until)
            })
    }

    private func limitsInForce() async -> DaemonStatus.Limits {
        let rates = await queue.ratesInForce()
        let limits = queue.taskLimits
        let window = await queue.scheduleWindow().map { window, until in
            DaemonStatus.Window(
                days: Weekdays.text(window.days), from: TimeOfDay.text(window.from), to: TimeOfDay.text(window.to),
                until: until)
        }
        return DaemonStatus.Limits(
            downloadRate: rates.download, uploadRate: rates.upload, downloadSource: rates.downloadSource.rawValue,
            uploadSource: rates.uploadSource.rawValue, window: window, activeTasks: limits.activeTasks,
            activeTasksPerOwner: limits.activeTasksPerOwner,
            connectionsPerTask: limits.connectionsPerTask, connectionsPerHost: limits.connectionsPerHost)
    }

    static func byName(_ counts: [TaskState: Int]) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
    }
}

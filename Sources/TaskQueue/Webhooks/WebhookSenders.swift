import Crypto
import Logging
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// The senders of all configured webhooks.
actor WebhookSenders {
    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    private let makeManager: @Sendable () throws(TransferError) -> SessionManager
    private var webhooks: [Webhook] = []
    private var senders: [WebhookSender] = []
    /// The number of calls of ``apply(_:isSessionNew:)``, of which the last one decides.
    private var generation = 0
    private var isStopped = false

    /// - Parameter makeManager: returns a session for the messages.
    init(
        store: TaskStore, clock: QueueClock, logger: Logger,
        makeManager: @escaping @Sendable () throws(TransferError) -> SessionManager
    ) {
        self.store = store
        self.clock = clock
        self.logger = logger
        self.makeManager = makeManager
    }

    /// Starts the senders of `webhooks` in place of those that run.
    ///
    /// - Parameter isSessionNew: whether the senders need a new session.
    func apply(_ webhooks: [Webhook], isSessionNew: Bool) async {
        let isUnchanged = webhooks == self.webhooks && (!isSessionNew || webhooks.isEmpty)
        guard !isUnchanged else { return }
        self.webhooks = webhooks
        generation += 1
        let own = generation
        await stopSenders()
        do {
            guard own == generation, !isStopped else { return }
            let names = webhooks.map(Self.name)
            let records = try await store.openWebhooks(names)
            guard own == generation, !isStopped, !webhooks.isEmpty else { return }
            let manager = try makeManager()
            senders = zip(webhooks, names).enumerated().compactMap { index, configured in
                let (webhook, name) = configured
                return records[name].map {
                    WebhookSender(
                        webhook, number: index + 1, name: name, record: $0, store: store, manager: manager,
                        clock: clock, logger: logger)
                }
            }
            await notify()
        } catch {
            // A reload tries again, also with the same configuration.
            self.webhooks = []
            logger.error("cannot start the webhooks", metadata: ["error": "\(error)"])
        }
    }

    /// Lets the senders read on after the journal has grown.
    func notify() async {
        for sender in senders { await sender.notify() }
    }

    func stop() async {
        isStopped = true
        await stopSenders()
    }

    private func stopSenders() async {
        let stopped = senders
        senders = []
        // All of them use the same short time.
        await withDiscardingTaskGroup { group in
            for sender in stopped { group.addTask { await sender.stop() } }
        }
    }

    var statuses: [WebhookStatus] {
        get async {
            var statuses: [WebhookStatus] = []
            for sender in senders { statuses.append(await sender.status) }
            return statuses
        }
    }

    /// Returns the name of a webhook in the store, which does not reveal its URL.
    static func name(_ webhook: Webhook) -> String {
        let digest = SHA256.hash(data: Array("\(webhook.url)\n\(webhook.batch ?? "")".utf8))
        return digest.prefix(16).hexadecimal
    }
}

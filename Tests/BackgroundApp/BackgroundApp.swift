import ControlClient
import Glibc

/// An app that queues downloads, quits, and finds its files at a later start.
@main
struct BackgroundApp {
    private static let identifier = "org.dld.background-app"

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "queue" where arguments.count >= 3:
            try await queue(directory: arguments[1], Array(arguments[2...]))
        case "collect":
            try await collect()
        default:
            print("usage: BackgroundApp queue DIRECTORY URL… | collect")
        }
    }

    /// Queues a download for each URL, and waits for all of them.
    private static func queue(directory: String, _ urls: [String]) async throws {
        let client = try await DLDClient.connect(identifier: identifier)
        var tasks: [DLDTask] = []
        for (number, url) in urls.enumerated() {
            tasks.append(try await client.download(url, to: "\(directory)/\(number)", key: "download-\(number)"))
        }
        print("queued \(tasks.count)")
        for task in tasks { print("file", try await task.value.path) }
    }

    /// Prints what happened since the app ran the last time.
    private static func collect() async throws {
        let client = try await DLDClient.connect(identifier: identifier)
        try await client.handleEventsForBackgroundSession { event in
            print("event", event.sequence, event.type.rawValue, event.key ?? "-", event.path ?? "-")
            // The event is acknowledged next. A kill must not take a line that only the buffer holds.
            fflush(nil)
        } completionHandler: {
            print("handler")
        }
    }
}

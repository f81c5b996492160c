import ControlClient

@main
struct Episodes {
    static func main() async throws {
        let client = try await DLDClient.connect(identifier: "org.example.episodes")
        var tasks: [DLDTask] = []
        for url in CommandLine.arguments.dropFirst() {
            tasks.append(try await client.download(url, key: url))
        }
        for task in tasks {
            for await progress in task.progress {
                print("task \(task.id): \(progress.bytesDone) of \(progress.bytesTotal ?? 0) bytes")
            }
            do {
                print("task \(task.id): \(try await task.value.path)")
            } catch let error as DLDTaskError {
                print(error)
            }
        }
    }
}

import ControlClient

@main
struct Episodes {
    static func main() async throws {
        let client = try await DLDClient.connect(identifier: "org.example.episodes")
        for url in CommandLine.arguments.dropFirst() {
            let task = try await client.download(url, key: url)
            print("task \(task.id): \(url)")
        }
    }
}

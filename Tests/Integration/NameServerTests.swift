import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Name servers that fail", .serialized, .timeLimit(.minutes(2)))
struct NameServerTests {
    @Test(
        "F35: SERVFAIL, silence and a name that is gone for a while are told apart, retried, and hold up nobody else",
        .enabled(if: isRoot, "port 53 is root's"))
    func flapping() async throws {
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer(["/file": [.serve(resource)], "/other": [.serve(resource)]])
        let (names, place) = (try NameServer(), try TemporaryDirectory())
        let daemon = try await DaemonProcess.started(
            "retry: {attempts: 1000, base-delay: 300ms, max-delay: 600ms}\n", prefix: names.prefix(in: place))
        names.say(.failure)
        let id = try await daemon.add("http://flapping.example:\(server.port)/file")
        let says: [(NameServer.Answer, String)] = [
            (.failure, "no name server answers"), (.silence, "no name server answers"), (.unknown, "does not resolve"),
        ]
        for (number, (answer, words)) in says.enumerated() {
            names.say(answer)
            try await eventually(that: "it is asked again", within: .seconds(30)) { names.questions >= 3 }
            let task = try await daemon.state(of: id, "to say \(words)", within: .seconds(30)) {
                $0.error?.message.contains(words) == true
            }
            #expect(task.error?.code == .dns && !task.isSettled, "\(task)")
            // An unknown name is looked up only a few times.
            guard answer != .unknown else { continue }
            let other = try await daemon.add("-o", "other\(number)", server.url("/other"))
            #expect(try await daemon.settled(other, within: .seconds(10)).state == .completed)
        }
        names.say(.loopback)
        let task = try await daemon.settled(id, within: .seconds(30))
        #expect(task.state == .completed, "\(task)")
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        daemon.expectTidy()
    }
}

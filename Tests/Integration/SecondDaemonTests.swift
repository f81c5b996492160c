import Glibc
import TestSupport
import Testing

/// A daemon that is started while another one runs.
@Suite("A second daemon", .timeLimit(.minutes(1)))
struct SecondDaemonTests {
    @Test("it is refused, whether or not someone removed the lock's file, and the first one goes on")
    func refused() async throws {
        let first = try await DaemonProcess.started("downloads: {}\n")
        let second = try DaemonProcess(
            configuration: "downloads: {}\n", stateDirectory: first.stateDirectory, downloadDirectory: first.downloads)
        for isRemoved in [false, true] {
            if isRemoved { #expect(unlink("\(first.stateDirectory)/lock") == 0) }
            let child = try second.launch()
            #expect(try await child.wait() == .exited(75))
            let text = isRemoved ? "another dld uses" : "another dld (process \(first.pid ?? 0)) uses"
            #expect(child.standardError.contains("\(text) \(first.stateDirectory)"), "\(child.standardError)")
        }
        #expect(try await first.dlctl("add", "--paused", "http://127.0.0.1:9/x").succeeded)
        #expect(try await first.terminate() == .exited(0))
        try await second.start()
        #expect(try await second.dlctl("show", "1").succeeded)
    }
}

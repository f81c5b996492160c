import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Fuzz tests of the requests. `DLD_FUZZ_SECONDS` sets the duration of the second test, `DLD_FUZZ_SEED` its seed;
/// `DLD_BIN_DIR` names a daemon that was built with AddressSanitizer.
@Suite("Requests at the edge of what can be written", .serialized, .timeLimit(.minutes(60)))
struct ExtremeRequestTests {
    private static let configuration =
        "retry: {attempts: 1, base-delay: 50ms, max-delay: 200ms}\ndisk: {min-free: 0}\nlimits: {active-tasks: 2}\n"

    /// Methods without parameters; all other methods have theirs in the table.
    private static let bare: Set<MethodName> = [
        .daemonReload, .daemonBackup, .daemonShutdown, .rpcDiscover,
    ]

    @Test("every method with every field missing, doubled, mistyped and extreme is answered, and the daemon lives")
    func everyField() async throws {
        let daemon = try await DaemonProcess.started(Self.configuration)
        for method in MethodName.allCases {
            #expect(method.parameters.isEmpty == Self.bare.contains(method), "\(method) has no parameters listed")
            try send(ExtremeRequests.all(of: method), to: daemon)
            try expectAlive(daemon, after: "\(method)")
        }
        // Accepted tasks are listed, and are still listed after a restart.
        let told = try daemon.tasks()
        #expect(!told.isEmpty)
        #expect(try await daemon.terminate() == .exited(0))
        try await daemon.start()
        #expect(try daemon.tasks().count == told.count)
        try expectAlive(daemon, after: "a restart")
    }

    @Test("requests that no one thought of are answered, and the daemon lives")
    func random() async throws {
        let environment = ProcessInfo.processInfo.environment
        let seconds = environment["DLD_FUZZ_SECONDS"].flatMap { Int($0) } ?? 1
        var generator = SeededGenerator(seed: environment["DLD_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1)
        let daemon = try await DaemonProcess.started(Self.configuration)
        let end = ContinuousClock.now + .seconds(seconds)
        repeat {
            let requests = (0..<200).map { _ in ExtremeRequests.random(using: &generator) }
            try send(requests, to: daemon)
            try expectAlive(daemon, after: requests.map(\.text).joined(separator: "\n"))
        } while ContinuousClock.now < end
    }

    private struct SeededGenerator: RandomNumberGenerator {
        private var state: UInt64

        init(seed: UInt64) { state = seed }

        /// Returns the next number of SplitMix64.
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func expectAlive(_ daemon: DaemonProcess, after what: String) throws {
        try #require(daemon.isRunning && daemon.answers, "after \(what): \(daemon.log.suffix(3000))")
        try #require(!daemon.log.contains("AddressSanitizer"), "after \(what): \(daemon.log.suffix(9000))")
    }

    /// Sends requests on one connection, except that each request that subscribes or announces open files has its own
    /// connection, and waits for all responses.
    private func send(_ requests: [ExtremeRequests.Request], to daemon: DaemonProcess) throws {
        try sendTogether(requests.filter { ![.eventsSubscribe, .sourceReceive].contains($0.method) }, to: daemon)
        for request in requests where request.method == .sourceReceive { try sendTogether([request], to: daemon) }
        for request in requests where request.method == .eventsSubscribe {
            try sendTogether([request, ExtremeRequests.request(.daemonStatus, "{}")], to: daemon)
        }
    }

    private func sendTogether(_ requests: [ExtremeRequests.Request], to daemon: DaemonProcess) throws {
        guard !requests.isEmpty else { return }
        let connection = try StreamSocket(path: daemon.socket)
        connection.setReadTimeout(30)
        // At most as many requests at a time as fit into the socket buffers: no thread reads while they are being sent.
        var first = 0
        while first < requests.count {
            var text = ""
            var count = 0
            while first + count < requests.count, count == 0 || text.utf8.count < 30_000 {
                text += requests[first + count].text + "\n"
                count += 1
            }
            connection.send(text.utf8)
            var answers = 0
            var line: [UInt8] = []
            while answers < count {
                let bytes = (try? connection.receive()) ?? []
                try #require(!bytes.isEmpty, "\(answers) answers to\n\(text)\(daemon.log.suffix(3000))")
                for byte in bytes {
                    guard byte == UInt8(ascii: "\n") else {
                        line.append(byte)
                        continue
                    }
                    // Events arrive between the responses.
                    if line.firstRange(of: #""method":"event""#.utf8) == nil { answers += 1 }
                    line = []
                }
            }
            first += count
        }
    }
}

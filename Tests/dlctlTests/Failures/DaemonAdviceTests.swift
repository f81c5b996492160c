import Testing

@testable import dlctl

@Suite struct DaemonAdviceTests {
    private static let environment = ["XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/anna"]
    private static let user = "/run/user/7/dld/dld.sock"
    private static let system = "/run/dld/dld.sock"

    private static func advice(units: String...) -> DaemonAdvice {
        DaemonAdvice(environment: environment) { units.contains($0) }
    }

    @Test("the daemon of each socket is started by its own command")
    func start() {
        let plain = Self.advice()
        #expect(plain.start([Self.user]) == "start it with \"dld\"")
        #expect(plain.start([Self.system]) == "start it with \"sudo systemctl start dld.socket dld.service\"")
        #expect(plain.start(["/tmp/x.sock"]) == "start it with \"dld --socket /tmp/x.sock\"")
        #expect(plain.start(["/tmp/a b'.sock"]) == #"start it with "dld --socket '/tmp/a b'\''.sock'""#)
        #expect(
            plain.start([Self.user, Self.system])
                == "start your own with \"dld\", or the system's with "
                + "\"sudo systemctl start dld.socket dld.service\"")
    }

    @Test(
        "a user's unit is started by systemd, wherever it is installed",
        arguments: [
            "/home/anna/.config/systemd/user", "/home/anna/.local/share/systemd/user", "/etc/systemd/user",
            "/usr/local/lib/systemd/user", "/usr/lib/systemd/user",
        ])
    func unit(directory: String) {
        let advice = Self.advice(units: directory + "/dld.service")
        #expect(advice.start([Self.user]) == "start it with \"systemctl --user start dld\"")
        #expect(advice.start(["/tmp/x.sock"]) == "start it with \"dld --socket /tmp/x.sock\"")
        #expect(advice.log(Self.user) == "\"journalctl --user -u dld -n 20\" may say why")
    }

    @Test("an instance is started by its own unit, or by its name")
    func instance() {
        let (system, user) = ("/run/dld-work/dld.sock", "/run/user/7/dld-work/dld.sock")
        let plain = Self.advice()
        #expect(
            plain.start([user, system]) == "start your own with \"dld --instance work\", or the system's with "
                + "\"sudo systemctl start dld@work.socket\"")
        #expect(plain.log(system) == "\"journalctl -u dld@work -n 20\" may say why")
        #expect(plain.log(user) == "the terminal or log of that daemon may say why")
        let unit = Self.advice(units: "/usr/lib/systemd/user/dld.service")
        #expect(unit.start([user]) == "start it with \"systemctl --user start dld@work.socket\"")
        #expect(unit.log(user) == "\"journalctl --user -u dld@work -n 20\" may say why")
        #expect(plain.start(["/tmp/dld-work/dld.sock"]) == "start it with \"dld --socket /tmp/dld-work/dld.sock\"")
    }

    @Test("a closed connection points to where that daemon logs")
    func log() {
        let advice = Self.advice()
        #expect(advice.log(Self.system) == "\"journalctl -u dld -n 20\" may say why")
        #expect(advice.log(Self.user) == "the terminal or log of that daemon may say why")
        #expect(advice.log("/tmp/x.sock") == "the terminal or log of that daemon may say why")
    }
}

import ControlProtocol
import Testing

@Suite("The places of a user's own daemon")
struct OwnPlacesTests {
    private static func places(_ environment: [String: String], hasRuntime: Bool = false) -> OwnPlaces {
        OwnPlaces(environment: environment, uid: 7) { path, uid in hasRuntime && path == "/run/user/7" && uid == 7 }
    }

    @Test("the variables of the XDG specification decide; relative ones count for nothing")
    func variables() {
        let set = Self.places(["HOME": "/h", "XDG_CONFIG_HOME": "/c/", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"])
        #expect(set.configurations == "/c" && set.states == "/s")
        #expect(set.sockets("dld") == ["/r/dld/dld.sock", "/s/dld/dld.sock"])
        let relative = Self.places(["HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "", "XDG_RUNTIME_DIR": "r"])
        #expect(relative.configurations == "/h/.config" && relative.states == "/h/.local/state")
        #expect(relative.sockets("dld-work") == ["/h/.local/state/dld-work/dld.sock"])
    }

    @Test("without XDG_RUNTIME_DIR, the user's directory beneath /run/user takes its place, as for a job of cron")
    func usualRuntime() {
        let places = Self.places(["HOME": "/h"], hasRuntime: true)
        #expect(places.sockets("dld") == ["/run/user/7/dld/dld.sock", "/h/.local/state/dld/dld.sock"])
    }

    @Test("without HOME, the account's home directory counts")
    func account() {
        #expect(OwnPlaces(environment: [:], uid: 0).home == "/root")
        #expect(OwnPlaces(environment: ["HOME": "/"], uid: 0).configurations == "/.config")
    }
}

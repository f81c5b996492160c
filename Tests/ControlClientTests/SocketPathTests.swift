import ControlClient
import TaskModel
import Testing

@Suite struct SocketPathTests {
    @Test("a path that was named is the only one tried")
    func explicit() {
        let environment = ["DLD_SOCKET": "/e", "XDG_RUNTIME_DIR": "/run/user/1"]
        #expect(SocketPath.candidates(explicit: "/x", environment: environment) == ["/x"])
        #expect(SocketPath.candidates(explicit: nil, environment: environment) == ["/e"])
    }

    @Test("otherwise the user's daemon comes before the system's")
    func order() {
        #expect(
            SocketPath.candidates(
                explicit: nil, environment: ["XDG_RUNTIME_DIR": "/run/user/1", "DLD_SOCKET": "", "HOME": "/h"])
                == ["/run/user/1/dld/dld.sock", "/h/.local/state/dld/dld.sock", "/run/dld/dld.sock"])
    }

    @Test("an instance has sockets of its own, whatever the environment says, and a named path comes first")
    func instance() throws {
        let environment = ["DLD_SOCKET": "/e", "XDG_RUNTIME_DIR": "/run/user/1", "XDG_STATE_HOME": "/s"]
        let instance = try InstanceName("work")
        #expect(
            SocketPath.candidates(explicit: nil, instance: instance, environment: environment)
                == ["/run/user/1/dld-work/dld.sock", "/s/dld-work/dld.sock", "/run/dld-work/dld.sock"])
        #expect(SocketPath.candidates(explicit: "/x", instance: instance, environment: environment) == ["/x"])
    }
}

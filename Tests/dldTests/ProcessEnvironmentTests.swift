import TaskModel
import Testing

@testable import dld

@Suite("The locations that the environment defines")
struct ProcessEnvironmentTests {
    private static let service = [
        "STATE_DIRECTORY": "/var/lib/dld:/var/lib/other", "RUNTIME_DIRECTORY": "/run/dld",
        "CONFIGURATION_DIRECTORY": "/etc/other",
    ]

    @Test("a system service uses the directories that systemd names, the first of several")
    func service() {
        let environment = ProcessEnvironment(variables: Self.service, uid: 100)
        #expect(environment.isSystem)
        #expect(environment.stateDirectory == "/var/lib/dld")
        #expect(environment.socket == "/run/dld/dld.sock")
        #expect(environment.configurationFile == "/etc/dld/dld.yaml")
        #expect(environment.downloadDirectory(stateDirectory: "/var/lib/dld") == "/var/lib/dld/downloads")
    }

    @Test("a user's daemon uses the XDG base directories, and their defaults below the home directory")
    func user() {
        let set = ProcessEnvironment(
            variables: [
                "HOME": "/home/u", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/run/user/7",
                "XDG_DOWNLOAD_DIR": "/d",
            ], uid: 7)
        #expect(!set.isSystem)
        #expect(set.configurationFile == "/c/dld/dld.yaml" && set.stateDirectory == "/s/dld")
        #expect(set.socket == "/run/user/7/dld/dld.sock" && set.downloadDirectory(stateDirectory: "/s") == "/d")
        let bare = ProcessEnvironment(variables: ["HOME": "/home/u"], uid: 7)
        #expect(bare.configurationFile == "/home/u/.config/dld/dld.yaml")
        #expect(bare.stateDirectory == "/home/u/.local/state/dld")
        #expect(bare.socket == "/home/u/.local/state/dld/dld.sock")
        #expect(bare.downloadDirectory(stateDirectory: "/s") == "/home/u/Downloads")
    }

    @Test("the daemon's own directories include those that systemd names, and the system's for a system service")
    func ownDirectories() {
        let service = ProcessEnvironment(variables: Self.service, uid: 100).ownDirectories
        #expect(service.contains("/run/dld") && service.contains("/etc/other") && service.contains("/etc"))
        let user = ProcessEnvironment(
            variables: ["RUNTIME_DIRECTORY": "/run/user/7/dld", "HOME": "/home/u"], uid: 7)
        #expect(user.ownDirectories == ["/run/user/7/dld", "/home/u/.config/dld/credentials"])
    }

    @Test("credentials come from the directory that systemd names, and for a user's daemon from the user's as well")
    func credentials() {
        let passed = ["CREDENTIALS_DIRECTORY": "/run/credentials/dld.service"]
        let service = ProcessEnvironment(variables: Self.service.merging(passed) { $1 }, uid: 100)
        #expect(service.systemCredentials == "/run/credentials/dld.service" && service.userCredentials == nil)
        #expect(service.ownDirectories.contains("/run/credentials/dld.service"))
        let user = ProcessEnvironment(variables: ["XDG_CONFIG_HOME": "/c"], uid: 7)
        #expect(user.systemCredentials == nil && user.userCredentials == "/c/dld/credentials")
    }

    @Test("an instance has a configuration, a state, a socket and a unit of its own")
    func instance() throws {
        let instance = try InstanceName("work")
        let variables = ["HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/7"]
        let user = ProcessEnvironment(variables: variables, uid: 7, instance: instance)
        #expect(user.configurationFile == "/home/u/.config/dld/work.yaml")
        #expect(
            user.stateDirectory == "/home/u/.local/state/dld-work" && user.socket == "/run/user/7/dld-work/dld.sock")
        let service = [
            "STATE_DIRECTORY": "/var/lib/dld-work", "RUNTIME_DIRECTORY": "/run/dld-work", "HOME": "/var/lib/dld",
        ]
        let system = ProcessEnvironment(variables: service, uid: 100, instance: instance)
        #expect(system.configurationFile == "/etc/dld/work.yaml" && system.stateDirectory == "/var/lib/dld-work")
        #expect(system.socket == "/run/dld-work/dld.sock" && system.serviceUnit == "dld@work.service")
        #expect(user.ofService.configurationFile == "/etc/dld/work.yaml")
        #expect(user.ofService.socket == "/run/dld-work/dld.sock")
    }

    @Test("root's own daemon has root's own places, by the rule of every user")
    func root() {
        let own = ProcessEnvironment(variables: ["XDG_RUNTIME_DIR": "/run/user/0", "HOME": "/root"], uid: 0)
        #expect(!own.isSystem)
        #expect(own.socket == "/run/user/0/dld/dld.sock")
        #expect(own.configurationFile == "/root/.config/dld/dld.yaml")
        #expect(own.stateDirectory == "/root/.local/state/dld")
        #expect(own.downloadDirectory(stateDirectory: "/s") == "/root/Downloads")
        #expect(own.ofService.isSystem && own.ofService.configurationFile == "/etc/dld/dld.yaml")
    }
}

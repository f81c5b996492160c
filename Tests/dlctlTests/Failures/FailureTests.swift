import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc
import TaskModel
import Testing

@testable import dlctl

@Suite struct FailureTests {
    @Test("every error of the client has its exit code")
    func exitCodes() {
        func status(_ error: ClientError) -> dlctl.ExitStatus { Failure(error).status }
        #expect(status(.noDaemon(paths: ["/x"], errno: ENOENT)) == .noDaemon)
        #expect(status(.connectionLost(path: "/x")) == .noDaemon)
        #expect(status(.notPermitted(path: "/x")) == .notPermitted)
        #expect(status(.timedOut) == .timedOut)
        #expect("\(Failure(.timedOut))".contains("after Ctrl-Z, `fg` in its terminal continues it"))
        #expect(status(.unusablePath("")) == .usage)
        #expect(status(.rpc(.unknownTask(TaskID(1)))) == .failed)
        #expect(status(.rpc(.refused(.quota, "too many"))) == .failed)
        #expect(status(.rpc(RPCError(code: RPCError.Number.unavailable, message: "x"))) == .failed)
        #expect(status(.rpc(RPCError(code: RPCError.Number.notPermitted, message: "x"))) == .notPermitted)
        #expect(status(.rpc(RPCError(FieldError(field: "url", message: "x")))) == .usage)
        #expect(status(.rpc(RPCError(code: RPCError.Number.methodNotFound, message: "x"))) == .usage)
    }

    @Test("without a daemon the message says how to start one")
    func noDaemon() {
        let failure = Failure(.noDaemon(paths: ["/a"], errno: ECONNREFUSED))
        #expect(failure.message == "no daemon answers on /a (Connection refused); start it with \"dld --socket /a\"")
        #expect(failure.code == "no-daemon")
        let several = Failure(.noDaemon(paths: ["/a", "/run/dld/dld.sock"], errno: ENOENT))
        #expect(several.message == "no daemon answers on /a or /run/dld/dld.sock (No such file or directory)")
        #expect(several.others.count == 1 && several.others.first?.hasPrefix("start your own with ") == true)
    }

    @Test("a request that is too long is answered with its length, the maximum and what to do")
    func tooLong() {
        let failure = Failure(ClientError.callTooLong(bytes: 2_000_000))
        #expect(failure.status == .usage)
        #expect(
            failure.message == "the request has 2000000 bytes; the maximum is 1048576; give fewer tasks in one command")
    }

    @Test("a file that was opened and passed is named as it was typed")
    func passedFile() {
        let refusal = RPCError(
            FieldError(field: "tasks[1].descriptor", message: "is in a directory of the daemon itself"))
        let names = FieldNames(files: ["a", "../b"])
        #expect(Failure(.rpc(refusal), names: names).message == "../b: is in a directory of the daemon itself")
        let named = RPCError(FieldError(field: "tasks[0].file", message: "user 7 may not upload /a: see uploads.roots"))
        #expect(
            Failure(.rpc(named), names: FieldNames(files: ["/a"])).message
                == "user 7 may not upload /a: see uploads.roots")
    }

    @Test("a rejected field is named as it was typed")
    func fields() {
        let names = FieldNames(urls: ["http://a/1"])
        let error = RPCError(FieldError(field: "tasks[0].maxSize", message: "must not be negative"))
        let failure = Failure(.rpc(error), names: names)
        #expect(failure.message == "--max-size: must not be negative")
        #expect(failure.field == "--max-size")
        #expect(failure.status == .usage)
        #expect(failure.code == "usage")
    }

    @Test("an error has the word of what is wrong")
    func codes() {
        #expect(Failure(.rpc(.unknownTask(TaskID(1)))).code == "unknown-task")
        #expect(Failure.unknown(TaskID(1)).code == "unknown-task")
        #expect(Failure(.rpc(.refused(.wrongState, "task 7 is completed"))).code == "wrong-state")
        #expect(Failure(.rpc(.refused(.wrongState, "task 7 is completed"))).status == .failed)
        #expect(Failure.usage("m").code == "usage")
        let unknownMethod = RPCError(
            code: RPCError.Number.methodNotFound, message: "m", data: .init(code: .invalid, field: "method"))
        #expect(Failure(.rpc(unknownMethod)).code == "usage")
        #expect(
            Failure(.rpc(RPCError(FieldError(field: "output", code: .pathNotAllowed, message: "m")))).code
                == "path-not-allowed")
        #expect(Failure(FieldError(field: "url", message: "m"), names: FieldNames()).code == "usage")
    }

    @Test("of several URLs the one at fault is named")
    func severalURLs() {
        let names = FieldNames(urls: ["http://a/1", "ftpx://b"])
        #expect(names.translate(field: "tasks[1].url", message: "is odd").message == "ftpx://b: is odd")
        #expect(names.translate(field: "tasks[0].directory", message: "x").message == "--directory for http://a/1: x")
        #expect(names.translate(field: "tasks[0].headers[2]", message: "x").field == "--header")
    }

    @Test("an empty URL is still called something")
    func emptyURL() {
        let one = FieldNames(urls: ["http://a/1"], mirrors: ["http://b/1", "nowhere"])
        #expect(one.translate(field: "tasks[0].mirrors[1]", message: "is odd").message == "--mirror nowhere: is odd")
        #expect(one.translate(field: "tasks[0].mirrors", message: "are odd").message == "--mirror: are odd")
        #expect(one.translate(field: "tasks[0].checksumURL", message: "x").field == "--checksum-url")
        #expect(one.translate(field: "tasks[0].metalink", message: "x").field == "--metalink")
        #expect(FieldNames(urls: [""]).translate(field: "url", message: "is empty").message == "URL: is empty")
    }

    @Test("the parser's complaint becomes one line that names the help to read")
    func parserMessage() {
        do {
            _ = try RootCommand.parseAsRoot(["add", "--bogus", "http://a/"])
            Issue.record("was accepted")
        } catch {
            let failure = Failure(parsing: RootCommand.message(for: error), full: RootCommand.fullMessage(for: error))
            #expect(failure.message == "--bogus: there is no such option; see \"dlctl add --help\"")
            #expect(failure.status == .usage)
        }
    }

    @Test("a value that an option does not take is answered with those that it does")
    func expectedValue() {
        do {
            _ = try RootCommand.parseAsRoot(["add", "--connections", "17", "http://a/"])
            Issue.record("was accepted")
        } catch {
            let failure = Failure(parsing: RootCommand.message(for: error), full: RootCommand.fullMessage(for: error))
            #expect(failure.message.contains("auto or a whole number from 1 to 16"))
        }
    }

    @Test("a misspelt command is answered with the nearest one")
    func misspeltCommand() {
        let commands = ["list", "pause"]
        #expect(
            Failure(unknownCommandIn: ["--socket", "x", "lst"], among: commands)?.message.contains("\"list\"") == true)
        #expect(Failure(unknownCommandIn: ["list", "lst"], among: commands) == nil)
        #expect(Failure(unknownCommandIn: ["--json"], among: commands) == nil)
        #expect(
            Failure(unknownCommandIn: ["help", "lst"], among: commands + ["help"])?.message.contains("\"list\"") == true
        )
        #expect(Failure(unknownCommandIn: ["help", "list"], among: commands + ["help"]) == nil)
        #expect(Failure(unknownCommandIn: ["help"], among: commands + ["help"]) == nil)
    }
}

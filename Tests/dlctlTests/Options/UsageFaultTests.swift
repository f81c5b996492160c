import ArgumentParser
import Testing

@testable import dlctl

@Suite struct UsageFaultTests {
    /// Returns the failure with which a command line ends, as the program reports it.
    private static func failure(_ words: String) -> Failure? {
        let arguments = words.split(separator: " ").map { $0 == "''" ? "" : String($0) }
        do {
            _ = try RootCommand.parseAsRoot(ArgumentRuns.join(arguments))
            return nil
        } catch {
            return Dlctl.failure(of: error, arguments)
        }
    }

    @Test(
        "a wrong use names the option at fault, and what would be right",
        arguments: [
            ("add --foo http://h/a", "--foo", "there is no such option"),
            ("add --foo", "--foo", "there is no such option"), ("add -x", "-x", "there is no such option"),
            ("add --chekcsum=x", "--chekcsum", "did you mean --checksum"),
            ("queue apply --foo", "--foo", "there is no such option"),
            (
                "limit --download abc", "--download",
                "\"abc\" is not a rate in bytes per second such as 500K or 2M, none or config"
            ),
            ("limit --upload -1", "--upload", "\"-1\" is not a rate in bytes per second"),
            ("list --limit -1", "--limit", "\"-1\" is not a positive whole number"),
            ("list --limit 0", "--limit", "\"0\" is not a positive whole number"),
            ("list --limit x", "--limit", "\"x\" is not a positive whole number"),
            ("list --limit", "--limit", "needs a value; give a positive whole number"),
            ("list --after x", "--after", "a task id"),
            ("events --after -1", "--after", "\"-1\" is not a sequence number"),
            ("events --after", "--after", "give a sequence number"),
            ("list --queue --reverse", "--reverse", "does not apply to --queue"),
            ("list --sort", "--sort", "needs a value"),
            ("list --state odd", "--state", "one of queued, active, waiting, paused, completed, failed, cancelled"),
            ("list --state -1", "--state", "\"-1\" is not one of queued"),
            ("list --since -2h", "--since", "\"-2h\" is not a time"),
            ("add --priority -1 http://h/a", "--priority", "\"-1\" is not one of low, normal, high, now"),
            ("list --batch ''", "--batch", "is empty"), ("pause --state odd", "--state", "one of queued, active"),
            ("add --limit abc http://h/a", "--limit", "bytes per second"),
            ("add --max-size x http://h/a", "--max-size", "a size such as 500K"),
            ("add --max-size -1 http://h/a", "--max-size", "\"-1\" is not a size"),
            ("add --connections x http://h/a", "--connections", "auto or a whole number from 1 to 16"),
            ("add --priority x http://h/a", "--priority", "one of low, normal, high, now"),
            ("add --on-conflict x http://h/a", "--on-conflict", "one of rename, overwrite, skip, fail"),
            ("add --after-task x http://h/a", "--after-task", "a task id"),
            ("add --output -a http://h/a", "--output", "as --output=-a"),
            ("upload f http://h/ --method GET", "--method", "one of PUT, POST"),
            ("wait 1 --timeout x", "--timeout", "a number of seconds such as 30 or 0.5"),
            ("wait 1 --timeout -1", "--timeout", "\"-1\" is not a number of seconds"),
            ("show", "id", "give an id"), ("backup", "file", "give a file"), ("queue apply", "file", "give a file"),
            ("completion", "shell", "give a shell"), ("rpc", "method", "give a method"),
            ("add --input a --input b", "--input", "can be given once"), ("wait -1", "id", "\"-1\" is not a task id"),
            ("pause -3 --yes", "id", "\"-3\" is not a task id"), ("add -1", "-1", "there is no such option"),
            ("show x", "id", "\"x\" is not a task id"),
            ("pause x", "id", "\"x\" is not a task id (a whole number), a range such as 3-5 or a state"),
            ("retry faild", "id", "or a state; did you mean failed?"),
            ("watch faild", "id", "did you mean failed?"), ("watch all", "id", "did you mean \"dlctl watch\"?"),
            ("pause all", "id", "did you mean --all?"), ("wait running", "id", "did you mean active?"),
            ("list running", "state", "did you mean active?"), ("list done", "state", "did you mean completed?"),
            ("list finished", "state", "did you mean completed?"),
            ("list all", "state", "\"dlctl list\" lists all tasks"),
            ("add --dir . http://h/a", "--dir", "did you mean --directory"),
            ("add -P . http://h/a", "-P", "did you mean --directory"),
            ("add -O a http://h/a", "-O", "did you mean --output"),
            ("add --password x http://h/a", "--password", "did you mean --password-file"),
            ("move x --first", "id", "\"x\" is not a task id"),
            ("move 1 --before x", "--before", "\"x\" is not a task id"),
            ("set 1 --limit x", "--limit", "bytes per second"), ("set 1 --priority x", "--priority", "one of low"),
            ("--generate-completion-script bash", "--generate-completion-script", "see \"dlctl completion bash\""),
            ("--generate-completion-script=zsh", "--generate-completion-script", "see \"dlctl completion zsh\""),
            ("--generate-completion-script", "--generate-completion-script", "see \"dlctl completion SHELL\""),
            ("completion x", "shell", "one of bash, zsh, fish"), ("lst", "command", "did you mean \"list\""),
            ("ls", "command", "did you mean \"list\""), ("rm 1", "command", "did you mean \"remove\""),
            ("delete 1", "command", "did you mean \"remove\""), ("start 1", "command", "did you mean \"resume\""),
            ("stop 1", "command", "did you mean \"pause\" or \"shutdown\"?"),
            ("http://h/a", "command", "did you mean \"add URL\"?"),
            ("find x", "command", "did you mean \"list --search TEXT\"?"),
            (
                "queue show b", "command",
                "there is no command \"queue show\"; the tasks of a batch: \"dlctl list --batch"
            ),
            ("add --limit 0 http://h/a", "--limit", "\"0\" is not a rate in bytes per second"),
        ])
    func faults(words: String, field: String, right: String) {
        let failure = Self.failure(words)
        #expect(failure?.field == field, "\(failure?.message ?? "was accepted")")
        #expect(failure?.message.contains(right) == true, "\(failure?.message ?? "was accepted")")
        #expect(failure?.message.contains(field == "command" ? "command" : field) == true)
        #expect(failure?.message.contains { $0 == "'" || $0 == "`" } == false, "quotes are double")
        #expect(failure?.code == "usage")
        #expect(failure?.status == .usage)
    }

    @Test(
        "a sentence begins with a lower-case letter, and says what to give",
        arguments: [
            ("wait", "give ids, a state, --all or --batch NAME; see "), ("add", "give a URL, or --input FILE; see "),
            ("pause", "select the tasks: "), ("move 1", "give the new position: --first, --last or --before ID; see "),
            ("limit 2M", "unexpected argument \"2M\"; write --download 2M or --upload 2M; see "),
            ("limit up 2M", "2 unexpected arguments: \"up\", \"2M\"; write --download 2M or --upload 2M"),
            ("limit x", "unexpected argument \"x\"; write --download RATE or --upload RATE; see "),
            ("move 1 first", "give the new position: --first, "),
            ("watch 1 --batch b", "give ids or --batch, not both; see "),
            ("upload http://h/ a b", "the URL comes last: dlctl upload FILE… URL; see "),
            ("wait 1 --all", "give ids, or --all or --batch, not both; see "),
        ])
    func sentences(words: String, start: String) {
        #expect(Self.failure(words)?.message.hasPrefix(start) == true, "\(Self.failure(words)?.message ?? "")")
    }

    @Test("what the parser takes is not called unknown", arguments: ["add -", "add -o a -- -x", "list --limit -1"])
    func known(words: String) {
        #expect(Self.failure(words)?.message.contains("no such option") != true)
    }
}

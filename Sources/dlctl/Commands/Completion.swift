import ArgumentParser
import Glibc

struct Completion: ParsableCommand {
    enum Shell: String, CaseIterable, ExpressibleByArgument {
        case bash, zsh, fish
    }

    static let configuration = CommandConfiguration(
        commandName: "completion",
        abstract: "Prints a completion script for a shell.",
        discussion: """
            EXAMPLES:
              dlctl completion bash > ~/.local/share/bash-completion/completions/dlctl
              dlctl completion zsh > ~/.zfunc/_dlctl
              dlctl completion fish > ~/.config/fish/completions/dlctl.fish
            """)

    @Argument(help: "The shell.")
    var shell: Shell

    func run() throws {
        let output = Output(STDOUT_FILENO)
        output.line(CompletionScript.text(for: shell))
        output.flush()
    }
}

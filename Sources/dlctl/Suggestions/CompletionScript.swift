import ArgumentParser

/// The completion script of a shell: that of the argument parser, with what it lacks.
enum CompletionScript {
    static func text(for shell: Completion.Shell) -> String {
        switch shell {
        case .bash: RootCommand.completionScript(for: .bash) + "\n" + joiningOfWords
        case .zsh: takingEqualsSigns(RootCommand.completionScript(for: .zsh))
        case .fish: measuringWords(RootCommand.completionScript(for: .fish))
        }
    }

    // MARK: fish

    /// Returns fish's script with the cursor's place in a word as the length of the word before it. Outside of an
    /// interactive shell (`complete -C`) fish tells that length, but not the place.
    private static func measuringWords(_ script: String) -> String {
        script.replacing("(__dlctl_tokens -tC)", with: #"(string length -- "$(commandline -ct)")"#)
    }

    // MARK: bash

    /// The function that bash calls.
    ///
    /// bash ends a word at each character of COMP_WORDBREAKS, which contains the colon, the equals sign and the at sign:
    /// `http://h` is three words, of which readline replaces the last. The function joins the words, completes the
    /// whole one, and removes from each candidate what readline keeps.
    private static let joiningOfWords = #"""
        __dlctl_complete() {
            local IFS=$' \t\n'
            local head="${COMP_LINE:0:COMP_POINT}" rest word
            local -a words=()
            local -i index last=-1
            for ((index = 0; index <= COMP_CWORD; index++)); do
                rest="${head#"${head%%[![:space:]]*}"}"
                word="${COMP_WORDS[index]}"
                if [[ "${index}" -eq "${COMP_CWORD}" ]]; then
                    # Of the last word only what is before the cursor.
                    word="${rest}"
                elif [[ "${rest}" != "${word}"* ]]; then
                    _dlctl "${@}"
                    return
                fi
                if [[ "${last}" -ge 0 && "${rest}" = "${head}" && ("${word}" = [:=@]* || "${words[last]}" = *[:=@]) ]]; then
                    words[last]+="${word}"
                else
                    words+=("${word}")
                    last+=1
                fi
                head="${rest#"${word}"}"
            done
            local whole="${words[last]}"
            # The argument is not a part of the word if readline removed quotation marks or backslashes.
            if [[ "${last}" -lt 1 || "${whole}" != *"${2}" ]]; then
                _dlctl "${@}"
                return
            fi

            # An option and its value in one word are two words for the rest of this script.
            local value="${whole}"
            if [[ "${whole}" = --*=* ]]; then
                words[last]="${whole%%=*}"
                value="${whole#*=}"
                words+=("")
                last+=1
            fi
            value="${value#[\"\']}"
            words[last]="${value}"

            local -a COMP_WORDS=("${words[@]}")
            local -i COMP_CWORD="${last}"
            local COMP_LINE="${words[*]}"
            local -i COMP_POINT="${#COMP_LINE}"
            _dlctl "${1}" "${value}" "${words[last - 1]}"

            if [[ "${COMPREPLY[*]}" = *://* ]]; then
                # The beginning of a URL is not the name of a file, and no space follows it.
                compopt +o filenames -o nospace 2>/dev/null
            fi
            local before="${whole%"${value}"}" kept="${whole%"${2}"}" candidate
            for index in "${!COMPREPLY[@]}"; do
                candidate="${before}${COMPREPLY[index]}"
                COMPREPLY[index]="${candidate#"${kept}"}"
            done
        }

        complete -o filenames -F __dlctl_complete dlctl
        """#

    // MARK: zsh

    /// Returns zsh's script with options that take their value after an equals sign too, which `_arguments` calls
    /// `--option=[description]`.
    private static func takingEqualsSigns(_ script: String) -> String {
        script.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            takingEqualsSign(line) ?? String(line)
        }.joined(separator: "\n")
    }

    /// Returns the line of an option with a value, changed; `nil` for another line.
    ///
    /// The line is `'--name[…]:value:…'`, `'*--name[…]:…'` or `'(--name -n)'{--name,-n}'[…]:…'`. That of a flag ends
    /// with its description.
    private static func takingEqualsSign(_ line: Substring) -> String? {
        guard !line.hasSuffix("]'"), let name = line.firstRange(of: "--"), let end = line.firstIndex(of: "[") else {
            return nil
        }
        let beginning = line[..<name.lowerBound].drop { $0 == " " }
        switch beginning {
        case "'", "'*": return line[..<end] + "=" + line[end...]
        case "'(":
            guard let comma = line[..<end].firstIndex(of: ",") else { return nil }
            return line[..<comma] + "=" + line[comma...]
        default: return nil
        }
    }
}

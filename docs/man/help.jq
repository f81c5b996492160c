# Makes an mdoc(7) page of the help that a program of swift-argument-parser prints with --experimental-dump-help.
# Arguments: $section, $date, $version; $rest is the end of the page, in mdoc.

# A line of text in which no character is a command of roff(7).
def plain: gsub("\\\\"; "\\e") | if test("^[.']") then "\\&" + . else . end;

# The same with each sentence on a line of its own, as mdoc wants it.
def sentences: plain | gsub("(?<=[a-z0-9)])\\. (?=[A-Z])"; ".\n");

# The lines of a discussion: its paragraphs, with indented lines as they are.
def paragraphs:
    reduce (split("\n")[] | sub("\\s+$"; "")) as $line ({out: [], literal: false};
        if $line | startswith("  ") then
            if .literal then . else .out += [".Bd -literal"] | .literal = true end | .out += [$line | plain]
        else
            if .literal then .out += [".Ed"] | .literal = false else . end
            | .out += [if $line == "" then ".Pp" elif $line == "EXAMPLES:" then "Examples:" else ($line | sentences) end]
        end)
    | .out + if .literal then [".Ed"] else [] end
    # A display and the start of a section bring their own space.
    | . as $lines
    | [range(length) as $i | select($lines[$i] != ".Pp"
        or ($i + 1 < ($lines | length) and ($lines[$i + 1] | test("^\\.(Bd|Pp)") | not))) | $lines[$i]];

def name: if .kind == "long" then "Fl -\(.name)" else "Fl \(.name)" end;

def argument:
    if .kind == "positional" then ".It Ar \(.valueName)" + (if .isRepeating then " ..." else "" end)
    else
        ".It " + ([.names | sort_by(.kind != "short")[] | name] | join(" , "))
            + (if .kind == "option" then " Ar \(.valueName)" else "" end)
    end,
    (.abstract // "" | split("\n")[] | sentences),
    (select(.defaultValue != null and (.abstract // "" | test("default") | not)) | "The default is \(.defaultValue | plain)."),
    (select(.allValueStrings != null) | "Values: \(.allValueStrings | join(", ") | plain).");

def shown: [.arguments[]? | select(.shouldDisplay)];

def options($common):
    shown | map(select(([.names[]?.name] - $common) != [] or .kind == "positional"))
    | if length == 0 then empty else ".Bl -tag -width 6n", (.[] | argument), ".El" end;

def usage($words):
    (".Ic dlctl " + ($words | join(" "))),
    (if shown | any(.kind != "positional") then ".Op Ar options" else empty end),
    (shown[] | select(.kind == "positional")
        | (if .isOptional then ".Op Ar " else ".Ar " end) + .valueName + (if .isRepeating then " ..." else "" end));

# The commands that have no subcommands, with the words that call them.
def commands($words):
    .subcommands[]? | select(.shouldDisplay and .commandName != "help")
    | ($words + [.commandName]) as $called
    | if (.subcommands // []) | map(select(.commandName != "help")) | length > 0 then commands($called)
      else {words: $called, command: .} end;

.command
| ([shown[] | .names[]?.name]) as $common
| (.discussion // "" | split("\n\n") | map(select(startswith("EXIT STATUS:") | not)) | join("\n\n")) as $discussion
| [commands([])] as $commands
| (
    ".Dd \($date)", ".Dt \(.commandName | ascii_upcase) \($section)", ".Os dld \($version)",
    ".Sh NAME", ".Nm \(.commandName)", ".Nd \(.abstract | plain | sub("\\.$"; ""))",
    ".Sh SYNOPSIS",
    if $commands == [] then ".Nm", ".Op Ar options" else ".Nm", ".Op Fl -socket Ar path", ".Op Fl -json",
        ".Ar command", ".Op Ar options", ".Op Ar arguments" end,
    ".Sh DESCRIPTION", ($discussion | paragraphs[]),
    (if $commands == [] then ".Sh OPTIONS" else ".Ss Options of every command" end), options([]),
    (if $commands == [] then empty else ".Sh COMMANDS" end),
    ($commands[] | .words as $words | .command
        | ".Ss \($words | join(" "))", usage($words), ".Pp", (.abstract // "" | sentences),
          (if (.discussion // "") != "" then ".Pp", (.discussion | paragraphs[]) else empty end), options($common)),
    ($rest | rtrimstr("\n"))
)

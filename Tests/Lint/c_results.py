#!/usr/bin/env python3
"""Finds calls of C functions whose result is dropped, in Swift and in C.

Swift imports C functions as discardable, so that the compiler says nothing. A result is looked at, or it is dropped by
`_ = call()` (in C by `(void)call()`) with a comment beside it or above it that says why.

A call by a bare name, without labels, is taken for C's unless a declaration of that name in Swift is in its reach:
a member of a type around it, a local name, a function of a file. What is not known so is C's until it is listed.
"""

import os
import re
import sys
from collections import defaultdict

from tokens import Source

# C functions without a result, or whose result is one of their arguments.
NO_RESULT = set(
    """
    _exit abort arc4random_buf bzero cfmakeraw closelog curl_easy_cleanup curl_easy_reset curl_free curl_global_cleanup
    curl_mime_free curl_share_cleanup curl_slist_free_all curl_url_cleanup exit free freeaddrinfo freeifaddrs globfree
    memcpy memmove memset openlog perror qsort rewinddir sqlite3_free sqlite3_progress_handler sync syslog tzset va_end va_start
    atomic_init atomic_store atomic_store_explicit atomic_thread_fence
    """.split()
)
# Functions of Swift's own library.
SWIFT = set(
    """
    assert assertionFailure debugPrint dump fatalError max min precondition preconditionFailure print swap
    unsafeBitCast withExtendedLifetime withUnsafeBytes withUnsafeMutableBytes withUnsafeMutablePointer
    withUnsafePointer zip
    """.split()
)
# C modules by whose names a call may be qualified.
MODULES = {"Glibc", "CCurl", "CDescriptors", "CLinux", "CReceiver", "CSystemd", "CZlib"}
KEYWORDS = set(
    """
    if while for guard switch case default return throw try await func init deinit subscript self super where in as is
    let var else do catch repeat defer some any inout static sizeof _Static_assert _Alignof consume copy get set throws
    unsafe
    """.split()
)
TYPES = {"class", "struct", "enum", "extension", "protocol", "actor"}
# What a statement goes on after, at a line's end or before a name on the same line.
GOES_ON = set("( [ , = . : ? -> return throw if while guard for switch case where in as is let var func @ #".split())
# Functions that return what their closure returns.
PASSES_ON = re.compile(r"^(with[A-Z].*|map|flatMap|compactMap|filter|first|contains|allSatisfy|reduce|fill|sync)$")
OPERATOR = re.compile(r"^[<>=!&|?+\-*/%^~]+$")
NAME = re.compile(r"^[a-z_][A-Za-z0-9_]*$")


class Declarations:
    """The names that Swift sources declare: members by type, functions of files, and functions of C without result."""

    def __init__(self):
        self.members = defaultdict(set)
        self.parents = defaultdict(set)
        self.functions = set()
        self.no_result = set(NO_RESULT)

    def add_swift(self, source):
        for index, token in enumerate(source.tokens):
            if token.text in TYPES and type_name(source, index):
                self._add_parents(source, index)
            if token.text not in ("func", "let", "var", "case"):
                continue
            name, around = source.text(index + 1), source.around[index]
            if around is None:
                if token.text == "func":
                    self.functions.add(name)
            else:
                owner = block_type(source, around)
                if owner:
                    self.members[owner].add(name)

    def _add_parents(self, source, index):
        name = type_name(source, index)
        at = index + 1
        while at < len(source.tokens) and source.text(at) not in ("{", "where"):
            if source.text(at)[:1].isupper():
                self.parents[name].add(source.text(at))
            at += 1

    def add_c(self, text):
        for name in re.findall(r"\bvoid\s+([a-z_][a-z0-9_]*)\s*\(", text):
            self.no_result.add(name)

    def has_member(self, owner, name, seen=()):
        if name in self.members[owner]:
            return True
        return any(
            parent != owner and parent not in seen and self.has_member(parent, name, (*seen, owner))
            for parent in self.parents[owner]
        )


def type_name(source, index):
    """The name of the type that a keyword at `index` opens, `None` where it opens none."""
    if source.text(index - 1) in (".", ":", ",", "&") or not source.text(index + 1)[:1].isupper():
        return None
    at = index + 1
    while source.text(at + 1) == "." and source.text(at + 2)[:1].isupper():
        at += 2
    return source.text(at)


def block_type(source, brace):
    """The type whose body the brace opens, `None` where it is another block."""
    at = brace - 1
    while at >= 0:
        text = source.text(at)
        if text in ")]}" and at in source.partner:
            if text == "}":
                return None
            at = source.partner[at] - 1
            continue
        if text in ("{", ";", "(", "[", "=", "func", "var", "let", "init"):
            return None
        if text in TYPES and type_name(source, at):
            return type_name(source, at)
        at -= 1
    return None


def enclosing(source, index):
    """The indices of the braces around a token, the innermost first."""
    at = source.around[index]
    while at is not None:
        if source.text(at) == "{":
            yield at
        at = source.around[at]


def is_swift_name(source, index, declarations):
    name = source.text(index)
    if name in SWIFT or name in declarations.functions:
        return True
    for brace in enclosing(source, index):
        owner = block_type(source, brace)
        if owner is not None:
            if declarations.has_member(owner, name):
                return True
        elif declares(source, brace, name):
            return True
    return False


def declares(source, brace, name):
    """Whether a block, or the head before it, declares a local name."""
    end = source.partner.get(brace, len(source.tokens))
    begin = head(source, brace)[0]
    for at in range(begin, end):
        if source.text(at) != name:
            continue
        if source.text(at - 1) in ("let", "var", "func", "for"):
            return True
        # A parameter: a name, or a label and a name, and a colon.
        if source.text(at + 1) == ":" and at < brace and source.text(at - 1) in ("(", ",", "_"):
            return True
        if source.text(at + 1) == ":" and at < brace and NAME.match(source.text(at - 1)):
            return True
        # A closure's parameter.
        if source.text(at + 1) in ("in", ",") and at > brace and source.text(at - 1) in ("{", ","):
            return True
    return False


def head(source, brace):
    """Where the statement that owns a block begins, and what the block is: a keyword, "value" or "closure"."""
    at, assigned, arrow = brace - 1, False, None
    while at >= 0:
        text = source.text(at)
        if text in (")", "]") and at in source.partner:
            at = source.partner[at] - 1
            continue
        if text == "}":
            # `} else {` and a closure between two of one statement's.
            if source.text(at + 1) in ("else", "catch"):
                return at + 1, source.text(at + 1)
            return at + 1, "closure"
        if text in ("{", ";", "(", "["):
            return at + 1, "closure"
        if text == "->":
            arrow = source.text(at + 1)
        if text == "=":
            assigned = True
        if text in ("func", "subscript"):
            is_void = arrow is None or arrow == "Void" or arrow == "("
            return at, "value" if text == "subscript" or not is_void else "func"
        if text in ("if", "guard", "while", "for", "switch", "repeat", "do", "defer", "catch", "else"):
            return at, text
        if text in ("init", "deinit", "set", "willSet", "didSet") and source.text(at - 1) != ".":
            return at, text
        if text == "get" and at == brace - 1:
            return at, "value"
        if text in ("let", "var") and source.text(at - 1) not in ("if", "guard", "while", "case", ","):
            return at, "closure" if assigned else "value"
        if text in ("return", "case"):
            return at, "closure"
        if source.begins_line(at) and at > 0 and not continues(source, at):
            return at, "closure"
        at -= 1
    return 0, "closure"


def continues(source, index):
    """Whether a token that begins a line goes on with the statement of the line before."""
    before, text = source.text(index - 1), source.text(index)
    if text in (".", ",", ")", "]", "{", "else", "->", "where", "?", ":", "=", "throws") or (
        OPERATOR.match(text) and text not in ("!", "&", "-")
    ):
        return True
    return before in GOES_ON or bool(OPERATOR.match(before)) and before not in ("!", "?")


def call_end(source, index):
    """The last token of a call, with the closures that trail it."""
    at = source.partner.get(index + 1, index + 1)
    while source.text(at + 1) == "{" and at + 1 in source.partner and not source.begins_line(at + 1):
        at = source.partner[at + 1]
    return at


def statement_start(source, index):
    """The first token of a statement that the call at `index` is, and whether `_ =` drops it; `None` for a part."""
    first, is_named = index, False
    if source.text(first - 1) == ".":
        first -= 2
    while source.text(first - 1) in ("try", "await", "unsafe") or (
        source.text(first - 1) in ("?", "!") and source.text(first - 2) == "try"
    ):
        first -= 1
    if source.text(first - 1) == "=" and source.text(first - 2) == "_":
        first, is_named = first - 2, True
        if source.text(first - 1) in ("let", "var"):
            first -= 1
    before = source.text(first - 1)
    if first == 0 or before in ("{", "}", ";"):
        return first, is_named
    if before == "in" and is_closure_head(source, first - 1):
        return first, is_named
    if before == ":" and is_case_label(source, first - 1):
        return first, is_named
    if source.begins_line(first) and not continues(source, first):
        return first, is_named
    return None


def is_closure_head(source, index):
    at = index - 1
    while at >= 0 and source.text(at) != "{":
        if source.text(at) in (")", "]") and at in source.partner:
            at = source.partner[at]
        if source.text(at) in ("for", "}", ";"):
            return False
        at -= 1
    return True


def is_case_label(source, index):
    at = index - 1
    while at >= 0:
        text = source.text(at)
        if text in ("case", "default"):
            return True
        if text in (")", "]") and at in source.partner:
            at = source.partner[at]
        elif text in ("{", "}", ";", "(", "[", "?", "="):
            return False
        at -= 1
    return False


def ends_statement(source, last):
    after = source.text(last + 1)
    if after in ("", "}", ";"):
        return True
    return source.begins_line(last + 1) and not continues(source, last + 1)


def dropping_statement(source, first, last, is_named):
    """The statement that drops a call's result: the call's own, or one around the closure whose value it is.

    Returns its first token, its last and whether `_ =` drops it; `None` where the result is looked at.
    """
    own = first, last, is_named
    brace = source.around[first]
    if is_named or brace is None or source.text(brace) != "{" or source.partner.get(brace) != last + 1:
        return own
    before = source.text(first - 1)
    if first - 1 != brace and before != "in":
        return own
    kind = head(source, brace)[1]
    if kind == "value":
        return None
    if kind != "closure":
        return own
    # What the closure belongs to: a call before it, or around it.
    outer = brace - 1
    if source.text(outer) == ")":
        outer = source.partner[outer] - 1
    if source.text(outer) in ("(", ",", ":"):
        around = source.around[brace]
        if around is None or source.text(around) != "(":
            return own
        outer = around - 1
    if not PASSES_ON.match(source.text(outer)):
        return own
    while source.text(outer - 1) in (".", "?", "!", ")"):
        outer = source.partner.get(outer - 1, outer - 1)
        if source.text(outer) in (".", "?", "!", "("):
            outer -= 1
    outer_end = source.partner[brace]
    while source.text(outer_end + 1) == ")":
        outer_end += 1
    start = statement_start(source, outer)
    if start is None or not ends_statement(source, outer_end):
        return None
    return dropping_statement(source, start[0], outer_end, start[1])


def check_swift(source, declarations):
    """Yields the line, the name and the fault of each call whose result is dropped without a reason."""
    for index, token in enumerate(source.tokens[:-1]):
        if not NAME.match(token.text) or token.text in KEYWORDS:
            continue
        opening = source.tokens[index + 1]
        if opening.text != "(" or not opening.touches or index + 1 not in source.partner:
            continue
        qualifier = source.text(index - 1)
        is_qualified = qualifier == "." and source.text(index - 2) in MODULES
        if qualifier in ("func", "@", "#", "\\") or (qualifier == "." and not is_qualified):
            continue
        # C has no labels.
        if source.text(index + 3) == ":" and NAME.match(source.text(index + 2)):
            continue
        if token.text in declarations.no_result:
            continue
        last = call_end(source, index)
        start = statement_start(source, index)
        if start is None or not ends_statement(source, last):
            continue
        first, is_named = start
        around = source.around[first]
        if around is not None and source.text(around) != "{":
            continue
        dropping = dropping_statement(source, first, last, is_named)
        if dropping is None:
            continue
        first, last, is_named = dropping
        if not is_qualified and is_swift_name(source, index, declarations):
            continue
        if not is_named:
            yield token.line, token.text, "its result is dropped"
        elif not source.has_reason(first, last):
            yield token.line, token.text, "no comment says why its result is dropped"


def check_c(source, declarations):
    for index, token in enumerate(source.tokens[:-1]):
        if not NAME.match(token.text) or token.text in KEYWORDS or source.text(index + 1) != "(":
            continue
        last = source.partner.get(index + 1)
        if last is None or source.text(last + 1) != ";" or not any(enclosing(source, index)):
            continue
        if token.text in declarations.no_result:
            continue
        before = source.text(index - 1)
        is_cast = before == ")" and source.text(index - 2) == "void" and source.text(index - 3) == "("
        if is_cast:
            if not source.has_reason(index - 3, last):
                yield token.line, token.text, "no comment says why its result is dropped"
            continue
        is_branch = before == ")" and source.text(source.partner.get(index - 1, 0) - 1) in ("if", "for", "while")
        if before in ("{", "}", ";", "else", "do") or is_branch:
            yield token.line, token.text, "its result is dropped"


def files(root):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".swift", ".c", ".h")):
                yield os.path.join(folder, name)


def check(texts):
    """Yields path, line, name and fault, from a dictionary of texts by path."""
    declarations = Declarations()
    sources = {path: Source(text, path.endswith(".swift")) for path, text in texts.items()}
    for path, source in sources.items():
        if path.endswith(".swift"):
            declarations.add_swift(source)
        else:
            declarations.add_c(texts[path])
    for path, source in sources.items():
        judge = check_swift if path.endswith(".swift") else check_c
        for line, name, fault in judge(source, declarations):
            yield path, line, name, fault


def main(roots):
    texts = {}
    for root in roots:
        for path in files(root):
            with open(path, encoding="utf-8") as file:
                texts[path] = file.read()
    if not texts:
        print("no sources in " + " ".join(roots), file=sys.stderr)
        return 2
    faults = list(check(texts))
    for path, line, name, fault in faults:
        print(f"{path}:{line}: error: {name}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["Sources"]))

"""Splits Swift and C source text into tokens, with the comments kept apart."""

import re
from collections import namedtuple

# `touches` tells whether no space stands between a token and the one before.
Token = namedtuple("Token", "text line touches")

PATTERN = re.compile(
    r"`?[A-Za-z_$][A-Za-z0-9_$]*`?"
    r"|[0-9][A-Za-z0-9_.]*"
    r"|\.\.\.|\.\.<|->|[<>=!&|?+\-*/%^~]+|[{}()\[\].,:;@#\\]"
)
OPENING = {"(": ")", "[": "]", "{": "}"}


class Source:
    """The tokens of a file, the brackets that belong together, and the lines that carry a comment."""

    def __init__(self, text, is_swift):
        self.tokens = []
        # Line number: the comment's text.
        self.comments = {}
        # Lines that hold nothing but a comment.
        self.comment_lines = set()
        self._read(text, is_swift)
        self._match()

    def _read(self, text, is_swift):
        at, line, touches = 0, 1, False
        while at < len(text):
            char = text[at]
            if char == "\n":
                line, at, touches = line + 1, at + 1, False
            elif char.isspace():
                at, touches = at + 1, False
            elif text.startswith("//", at):
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                self._comment(text[at:end], line)
                at, touches = end, False
            elif text.startswith("/*", at):
                end = text.find("*/", at)
                end = len(text) if end < 0 else end + 2
                self._comment(text[at:end], line)
                line += text.count("\n", at, end)
                at, touches = end, False
            elif not is_swift and char == "#" and not text[text.rfind("\n", 0, at) + 1 : at].strip():
                # A directive, with the lines that continue it.
                match = re.compile(r"(?:\\\n|[^\n])*").match(text, at)
                line += match.group().count("\n")
                at = match.end()
            elif char == '"' or (is_swift and re.match(r'#+"', text[at : at + 9])):
                end = string_end(text, at) if is_swift else c_string_end(text, at, '"')
                self.tokens.append(Token('""', line, touches))
                line += text.count("\n", at, end)
                at, touches = end, True
            elif char == "'" and not is_swift:
                self.tokens.append(Token("''", line, touches))
                at, touches = c_string_end(text, at, "'"), True
            else:
                match = PATTERN.match(text, at)
                word = match.group() if match else char
                if word[0] in "/*<>=!&|?+-%^~":
                    # A comment may begin right behind an operator.
                    begun = [word.find(mark) for mark in ("//", "/*") if word.find(mark) > 0]
                    word = word[: min(begun)] if begun else word
                self.tokens.append(Token(word.strip("`"), line, touches))
                at, touches = at + len(word), True

    def _comment(self, text, line):
        self.comments[line] = text
        if not self.tokens or self.tokens[-1].line != line:
            self.comment_lines.add(line)

    def _match(self):
        # By index: the other bracket of each, and the innermost bracket that is open around each token.
        self.partner, self.around, open_brackets = {}, [], []
        for index, token in enumerate(self.tokens):
            if token.text in ")]}" and open_brackets:
                start = open_brackets.pop()
                self.partner[start], self.partner[index] = index, start
            self.around.append(open_brackets[-1] if open_brackets else None)
            if token.text in OPENING:
                open_brackets.append(index)

    def text(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def begins_line(self, index):
        return index == 0 or self.tokens[index - 1].line < self.tokens[index].line

    def has_reason(self, first, last):
        """Whether a comment stands beside the statement from token `first` to token `last`, or right above it."""
        begin, end = self.tokens[first].line, self.tokens[last].line
        beside = [self.comments.get(line, "") for line in range(begin, end + 1)]
        above = self.comments.get(begin - 1, "") if begin - 1 in self.comment_lines else ""
        return any(is_reason(comment) for comment in beside + [above])


def is_reason(comment):
    if comment.startswith("///") or "MARK:" in comment:
        return False
    return len(re.findall(r"[A-Za-z]{2,}", comment)) > 0


def c_string_end(text, at, quote):
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def string_end(text, at):
    """The end of a Swift string literal, over its interpolations."""
    hashes = len(text[at:]) - len(text[at:].lstrip("#"))
    at += hashes
    quote = '"""' if text.startswith('"""', at) else '"'
    at += len(quote)
    closing, escape = quote + "#" * hashes, "\\" + "#" * hashes
    while at < len(text):
        if text.startswith(closing, at):
            return at + len(closing)
        if text.startswith(escape + "(", at):
            at = interpolation_end(text, at + len(escape) + 1)
        elif text.startswith(escape, at):
            at += len(escape) + 1
        else:
            at += 1
    return at


def interpolation_end(text, at):
    depth = 1
    while at < len(text) and depth > 0:
        if text[at] == '"':
            at = string_end(text, at)
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at

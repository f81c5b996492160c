#!/usr/bin/env python3
"""Tests of c_results.py: what it finds, and what it lets pass."""

import unittest

from c_results import check


def names(text, path="a.swift", **others):
    texts = {path: text}
    texts.update({name.replace("_", "."): other for name, other in others.items()})
    return [name for _, _, name, _ in check(texts)]


class DroppedInSwift(unittest.TestCase):
    def found(self, text):
        self.assertEqual(names(text), ["close"], text)

    def test_statement(self):
        self.found("func f(_ fd: Int32) {\n    close(fd)\n    g = 1\n}")

    def test_first_and_last_of_several(self):
        self.found("func f() -> Int {\n    close(fd)\n    return 1\n}")
        self.found("func f() {\n    g = 1\n    close(fd)\n}")

    def test_whole_body_of_a_function_without_a_result(self):
        self.found("func f(_ fd: Int32) { close(fd) }")
        self.found("func f() throws(Fault) -> Void { close(fd) }")
        self.found("struct A: ~Copyable {\n    deinit { close(fd) }\n}")

    def test_block_of_a_statement(self):
        self.found("func f() {\n    defer { close(fd) }\n    g = 1\n}")
        self.found("func f() {\n    if fd >= 0 { close(fd) }\n}")
        self.found("func f() {\n    if a { b = 1 } else { close(fd) }\n}")
        self.found("func f() {\n    guard a, let b = c else { close(fd); return }\n}")
        self.found("func f() {\n    for fd in all { close(fd) }\n}")
        self.found("func f() {\n    if let fd = d { close(fd) }\n}")
        self.found("func f() {\n    switch fd {\n    case 1: close(fd)\n    default: break\n    }\n}")

    def test_behind_a_semicolon(self):
        self.found("func f() {\n    g = 1; close(fd)\n}")

    def test_closure_whose_caller_drops_its_value(self):
        self.found("func f() {\n    all.forEach { close($0) }\n}")
        self.found("func f() {\n    queue.async { fd in close(fd) }\n}")
        self.found("func f() {\n    path.withCString { close($0) }\n}")
        self.found("func f() {\n    let thread = start { close(fd) }\n}")

    def test_last_statement_of_a_longer_closure(self):
        self.found("func f() {\n    let n = path.withCString {\n        g = 1\n        close($0)\n    }\n}")

    def test_named_module(self):
        self.found("func f() {\n    Glibc.close(fd)\n}")

    def test_arguments_on_several_lines(self):
        self.found("func f() {\n    close(\n        fd,\n        1)\n}")

    def test_trailing_closure(self):
        self.found("func f() {\n    _ = close(fd) { a, b in a * b }\n}")

    def test_beside_a_comment_alone(self):
        self.found("func f() {\n    close(fd)  // nobody reads it\n}")

    def test_underscore_without_a_reason(self):
        self.found("func f() {\n    _ = close(fd)\n}")
        self.found("func f() {\n    defer { _ = close(fd) }\n}")
        self.found("func f() {\n    g = 1  // another's\n    _ = close(fd)\n}")
        self.found("func f() {\n    _ = path.withCString { close($0) }\n}")
        self.found("func f() {\n    // MARK: The end\n    _ = close(fd)\n}")

    def test_method_of_another_type_with_that_name(self):
        self.found("struct A {\n    func close(_ fd: Int32) {}\n}\nstruct B {\n    func f() {\n        close(fd)\n    }\n}")

    def test_behind_strings_and_comments(self):
        self.found('func f() {\n    g = "\\(h(")")) { close("\n    close(fd)\n}')
        self.found('func f() {\n    g = #"\\("# // }\n    /* { */ close(fd)\n}')


class LookedAtInSwift(unittest.TestCase):
    def passes(self, text, **others):
        self.assertEqual(names(text, **others), [], text)

    def test_condition(self):
        self.passes("func f() {\n    while write(fd, &one, 8) < 0, errno == EINTR {}\n}")
        self.passes("func f() {\n    guard close(fd) == 0 else { return }\n}")
        self.passes("func f() {\n    guard a,\n        close(fd) == 0,\n        close(fd)\n    else { return }\n}")

    def test_assignment_and_argument(self):
        self.passes("func f() {\n    let a =\n        close(fd)\n    g(close(fd))\n    b = a\n        + close(fd)\n}", b_swift="func g() {}")
        self.passes("func f() {\n    self.a = [\n        close(fd),\n        close(fd)\n    ]\n}")

    def test_value_of_a_body(self):
        self.passes("func f() -> Int32 { close(fd) }")
        self.passes("func f() throws(Fault) -> Int32 {\n    close(fd)\n}")
        self.passes("struct A {\n    var a: Int32 { close(fd) }\n    var b: Int32 {\n        get { close(fd) }\n    }\n}")

    def test_value_of_a_closure(self):
        self.passes("func f() {\n    let n = bytes.withUnsafeBytes { read(fd, $0.baseAddress, $0.count) }\n}")
        self.passes("func f() -> Int {\n    bytes.withUnsafeBytes { read(fd, $0) }\n}")
        self.passes("func f() {\n    guard fill({ getsockname(fd, $0, $1) }) == 0 else { return }\n}")
        self.passes("func f() {\n    return all.map { close($0) }\n}")

    def test_dropped_for_a_reason(self):
        self.passes("func f() {\n    _ = close(fd)  // nothing was written to it\n}")
        self.passes("func f() {\n    // Nothing was written to it.\n    _ = close(fd)\n}")
        self.passes("func f() {\n    _ = path.withCString { close($0) }  // nobody reads it\n}")
        self.passes("func f() {\n    defer { _ = close(fd) }  // nothing was written to it\n}")

    def test_function_without_a_result(self):
        self.passes("func f() {\n    free(space)\n    curl_easy_cleanup(raw)\n    exit(1)\n}")
        self.passes("func f() {\n    own_start()\n}", own_h="void own_start(void);")

    def test_names_of_swift(self):
        self.passes("struct A {\n    func close(_ fd: Int32) {}\n    func f() { close(1) }\n}")
        self.passes("protocol P {}\nextension P {\n    func close() {}\n}\nstruct A: P {\n    func f() { close() }\n}")
        self.passes("func f(_ action: () -> Void) {\n    action()\n}")
        self.passes("func f() {\n    let job = { g = 1 }\n    job()\n    for work in all { work(1) }\n}")
        self.passes("func f() {\n    each { done in\n        done()\n    }\n}", b_swift="func each() {}")
        self.passes("func f() {\n    help()\n    print(a)\n}", b_swift="func help() {}")

    def test_labels(self):
        self.passes("func f() {\n    close(at: 1)\n}")

    def test_text(self):
        self.passes('func f() {\n    g = """\n        close(fd)\n        """\n    // close(fd)\n}')


class C(unittest.TestCase):
    def test_dropped(self):
        for body in (
            "close(fd);",
            "if (fd) close(fd);",
            "if (fd) return 1; else close(fd);",
            "for (;;) { close(fd); }",
            "(void)close(fd);",
            'a = "{"; close(fd);',
        ):
            self.assertEqual(names("int f(int fd) {\n    " + body + "\n    return 0;\n}", "a.c"), ["close"], body)

    def test_looked_at(self):
        for body in (
            "return close(fd);",
            "int code = close(fd);",
            "if (close(fd) != 0) return 1;",
            "code = a ? close(fd) : 0;",
            "(void)close(fd); // read only",
            "// Read only.\n    (void)close(fd);",
            "memset(&a, 0, sizeof a);",
            "own_start();",
        ):
            text = "void own_start(void);\nint close(int);\nint f(int fd) {\n    " + body + "\n    return 0;\n}"
            self.assertEqual(names(text, "a.h"), [], body)


if __name__ == "__main__":
    unittest.main()

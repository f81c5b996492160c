"""Says which tests a document names that there are not: `SuiteTests`, or `SuiteTests.function` and `.function` after it.

Usage: named_tests.py DOCUMENT...
"""

import pathlib
import re
import sys

NAME = re.compile(r"`(\w+Tests)?(?:\.(\w+))?`")
SUITE = re.compile(r"\b(?:struct|class|enum) (\w+Tests)\b")
FUNCTION = re.compile(r"\bfunc (\w+)\b")


def functions_by_suite(root):
    """The functions of the files in which each suite is declared."""
    found = {}
    for path in root.rglob("*.swift"):
        text = path.read_text()
        for suite in SUITE.findall(text):
            found.setdefault(suite, set()).update(FUNCTION.findall(text))
    # A target of tests may be named as a whole.
    for target in root.iterdir():
        found.setdefault(target.name, set())
    return found


def missing(text, known):
    for number, line in enumerate(text.splitlines(), 1):
        suite = None
        for named, function in NAME.findall(line):
            suite = named or suite
            if not suite:
                continue
            if suite not in known:
                yield number, suite
            elif function and function not in known[suite]:
                yield number, f"{suite}.{function}"


def main():
    known = functions_by_suite(pathlib.Path(__file__).resolve().parent.parent)
    faults = [
        f"{document}:{number}: there is no test {name}"
        for document in sys.argv[1:]
        for number, name in missing(pathlib.Path(document).read_text(), known)
    ]
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

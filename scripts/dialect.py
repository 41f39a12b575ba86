#!/usr/bin/env python3
"""Counts habits that make the product's Rust hard to read, and fails where a count exceeds its limit.

One of them is a number of a rule whose doc comment names neither the measurement or the document that set it, nor says that it
is a guess. Bounds of work and of memory, numbers of things that are shown, and the layout of data are no such numbers.

    dialect.py        the counts beside their limits
    dialect.py -v     and the place of each

Product code is all Rust below crates/*/src and src, without the simulator and without tests; tests are tests, benchmarks, the
fuzz targets and the build scripts. A limit is only ever lowered.
"""

import re
import subprocess
import sys

# A comment that begins with one of these words needs another text to be understood.
DANGLING = re.compile(r"(That|Those|The same|Its|Whose|Their|Of|What|Who|It|They|These|Such)\b")
PATTERNS = {
    "doc comment that explains the next item": re.compile(
        r"^[ \t]*///.*\b(next|following) (constant|field|item|variant)s?\b", re.M
    ),
    "match on a bool": re.compile(r"^[ \t]*(true|false) => [^\n]*\n\s*(?!\1)(?:true|false) => ", re.M),
    "closure argument `it`": re.compile(r"\|(?:&|mut |\()*it(?:: [^|]+)?\|"),
    "tuple taken apart in arguments": re.compile(r"fn \w+[^{;]*?[(,]\s*\([a-z_, ]+\): \("),
}
# The crates with rules, their numbers, and the words of a doc comment that names a source, or shows that none is needed.
RULES = re.compile(r"crates/(insight|failure|advice|placing|predict|compare|import|analyze)/src/")
NUMBER = re.compile(r"((?:^///[^\n]*\n)*)^(?:pub(?:\([a-z]+\))? )?const \w+: ([^=]*) = ([^;\"]*\d[^;\"]*);", re.M)
SOURCE = re.compile(
    r"[Mm]easured|Fitted|[Gg]uess|decision|\bbound\b|`\w+\.py`|\w\([1-8]\)|\.(go|[ch])\b|real (runs|times)|recorded builds|"
    r"Linux|kernel's|CONFIG_HZ|FAT's|clang|docker|SIG[A-Z]|whole seconds|once a second"
)
NO_RULE = re.compile(
    r"^(The (most|largest (number|change|span)|longest (name|script|version|word)|approximate)|So many)\b(?!.*\bns\b)|"
    r"\b(bits?|bytes?|digits|fields?|layout|flag|places? of|indices|code of|status(es)?|zones?|pixels|columns|width|shown|"
    r"printed|colours|drawn|unit|page|chart)\b"
)
LIMITS = {
    "number of a rule without a source": 0,
    "match on a bool": 0,
    "closure argument `it`": 0,
    "tuple taken apart in arguments": 43,
    "doc comment that explains the next item": 0,
    "doc comment that begins with a word that points elsewhere": 0,
    "comment in code that begins with a word that points elsewhere": 0,
}
TEST_LIMITS = {
    "number of a rule without a source": 0,
    "match on a bool": 0,
    "closure argument `it`": 0,
    "tuple taken apart in arguments": 5,
    "doc comment that explains the next item": 0,
    "doc comment that begins with a word that points elsewhere": 0,
    "comment in code that begins with a word that points elsewhere": 0,
}
DOC_COMMENT = re.compile(r"(?:^|\n)((?:[ \t]*///[^\n]*\n)+)")
# A comment in code, alone on its line or behind code.
CODE_COMMENT = re.compile(r"(?:^|[ \t])// ([^\n]*)")


def files():
    """The paths of Rust files, and whether each is product code."""
    listed = subprocess.run(["git", "ls-files", "*.rs"], capture_output=True, text=True, check=True)
    for path in listed.stdout.splitlines():
        inside = re.match(r"(crates/(?!sim/)[^/]+/)?src/", path) and not re.search(r"(^|/)tests?(/|\.rs$)", path)
        if inside or re.match(r"(crates/[^/]+/)?(tests/|benches/|build\.rs)|fuzz/", path):
            yield path, bool(inside)


def places(product):
    """The places of each habit in product code, or in tests."""
    found = {name: [] for name in LIMITS}
    for path, is_product in files():
        if is_product != product:
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()

        def place(offset, text=text, path=path):
            return f"{path}:{text.count(chr(10), 0, offset) + 1}"

        for name, pattern in PATTERNS.items():
            found[name] += [place(match.start()) for match in pattern.finditer(text)]
        for match in DOC_COMMENT.finditer(text):
            first = match[1].split("\n")[0].strip().removeprefix("///").strip()
            if DANGLING.match(first):
                name = "doc comment that begins with a word that points elsewhere"
                found[name].append(f"{place(match.start(1))}: {first}")
        for first in code_comments(text):
            if DANGLING.match(first.group(1)):
                name = "comment in code that begins with a word that points elsewhere"
                found[name].append(f"{place(first.start(1))}: {first.group(1)}")
        if product and RULES.match(path):
            found["number of a rule without a source"] += map(place, numbers_without_source(text))
    return found


def code_comments(text):
    """The matches of the first lines of comments in code."""
    offset, continues = 0, False
    for line in text.splitlines(keepends=True):
        is_alone = line.lstrip().startswith("// ")
        if not (is_alone and continues) and (match := CODE_COMMENT.search(text, offset, offset + len(line))):
            yield match
        continues = is_alone
        offset += len(line)


def numbers_without_source(text):
    """The offsets of numbers of rules whose doc comments name no source; several in a row share the first one's comment."""
    words, end = "", None
    for match in NUMBER.finditer(text):
        comment, kind, value = match.groups()
        words = comment.replace("///", "") if comment or match.start() != end else words
        end = match.end() + 1
        words = " ".join(words.split())
        is_number = re.search(r"\b([ui](8|16|32|64|size)|f64)\b", kind) and "<<" not in value
        if is_number and not SOURCE.search(words) and not NO_RULE.search(words):
            yield match.start(3)


def main():
    exceeded = False
    for area, limits in (("product", LIMITS), ("tests", TEST_LIMITS)):
        for name, found in places(area == "product").items():
            print(f"{area}: {name}: {len(found)} (at most {limits[name]})")
            if "-v" in sys.argv[1:]:
                print("".join(f"    {place}\n" for place in found), end="")
            exceeded = exceeded or len(found) > limits[name]
    if exceeded:
        sys.exit("dialect: CONTRIBUTING.md has the rules of the code and the language; dialect.py -v names the places")


if __name__ == "__main__":
    main()

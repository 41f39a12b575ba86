#!/usr/bin/env python3
"""Finds circles of files that use each other, inside each crate.

At most 3 files may be in a circle. A file uses another one by a path that begins with crate::, super:: or self::, or by `use` of a
submodule, outside of comments and tests. `mod` is no use.
"""

import pathlib
import re
import sys

MOST = 3
PATH = re.compile(r"\b(?:crate|super|self)\s*::\s*(?:[{*]|[A-Za-z_])")
# `use` of a submodule.
CHILD = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?use (?=[a-z])(?!crate|super|self)", re.M)
# `#[cfg(test)] mod tests;` and all behind it.
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*mod \w+\s*[;{]", re.M)
# Comments, strings and characters.
WORDS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\br(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'])'""",
    re.S,
)


def code(text):
    """The text without tests, comments and strings."""
    return WORDS.sub(" ", TESTS.split(text)[0])


def names(text, at):
    """The paths, as lists of names, of the tree of a path that begins at `at`."""
    found = []
    here = []
    stack = []
    token = re.compile(r"\s*(::|[A-Za-z_]\w*|[{},*])")
    while match := token.match(text, at):
        at = match.end()
        word = match.group(1)
        if word == "::":
            continue
        if word == "{":
            stack.append(here)
        elif word in ",}":
            found.append(here)
            if not stack:
                break
            here = stack[-1] if word == "," else stack.pop()
            if word == "}" and not stack:
                break
        else:
            here = here + [word]
            following = token.match(text, at)
            if not stack and (not following or following.group(1) != "::"):
                found.append(here)
                break
    return found


def modules(source):
    """Each file's module path, and each module's file."""
    files = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if "tests" in parts[:-1]:
            continue
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        files.setdefault(tuple(parts), file)
    return files


def uses(files, module, text):
    """The modules whose files a file's code uses."""
    found = set()
    starts = [match.start() for match in PATH.finditer(text)]
    starts += [match.end() for match in CHILD.finditer(text)]
    for start in starts:
        for path in names(text, start):
            base, rest = list(module), path
            if rest[0] == "crate":
                base, rest = [], rest[1:]
            while rest and rest[0] in ("self", "super"):
                base, rest = (base[:-1] if rest[0] == "super" else base), rest[1:]
            target = tuple(base)
            for name in rest:
                if target + (name,) not in files:
                    break
                target += (name,)
            if target in files and target != module:
                found.add(target)
    return found


def circles(graph):
    """The sets of modules that reach each other (Tarjan)."""
    order, low, stack, done = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            at = stack.index(node)
            done.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return done


def main():
    sys.setrecursionlimit(10_000)
    bad = False
    root = pathlib.Path(__file__).resolve().parent.parent
    for source in [root / "src", *sorted(root.glob("crates/*/src"))]:
        crate = source.parent.name if source != root / "src" else "tr"
        files = modules(source)
        graph = {m: uses(files, m, code(f.read_text())) for m, f in files.items()}
        for circle in circles(graph):
            if len(circle) > MOST:
                bad = True
                shown = " ".join("::".join(module) or "lib" for module in circle)
                print(f"layers: {crate}: {len(circle)} files use each other: {shown}", file=sys.stderr)
    sys.exit(bad)


main()

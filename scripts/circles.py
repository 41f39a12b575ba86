#!/usr/bin/env python3
"""Finds circles of files that use each other, inside each crate.

    circles.py          fails if more than three files of a crate are in one circle
    circles.py -v       prints the largest circle of each crate, and its arrows
    circles.py DIR...   reads these directories of sources instead of the crates'

A file uses another one by a path, in a `use` or in the midst of code: one that begins with crate::, super:: or self::, or
with the name of a submodule. Comments and tests do not count. A path through a re-export leads to the file that declares the
name, so that a re-export hides no arrow; neither `mod child;` nor the re-export of a child's name is a use by itself, unless
the file's own code takes that name.

A call of a method is a use of the file with its `impl`, if that file is not the one that declares the type: the type does not
lead there. The types of values are not known here, so only methods count whose name no other function of the crate has, and
which are not named like a common method of the standard library.
"""

import collections
import pathlib
import re
import sys

MOST = 3
# `#[cfg(test)] mod tests;` and all behind it.
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*mod \w+\s*[;{]", re.M)
# Comments, strings and characters.
WORDS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\br(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'])'""",
    re.S,
)
USE = re.compile(r"^[ \t]*(pub(?:\([^)]*\))? )?use\s+([^;]*);", re.M)
PATH = re.compile(r"(?<![\w:.])(?:[A-Za-z_]\w*\s*::\s*)+[A-Za-z_]\w*")
DECLARED = re.compile(
    r"\b(?:fn|struct|enum|union|trait|type|const|static|mod)\s+(?:mut\s+)?([A-Za-z_]\w*)|\bmacro_rules!\s*(\w+)"
)
# The head of an `impl` of a type's own methods, and its type without its path.
IMPL = re.compile(r"^[ \t]*impl\b(?:<[^{};]*?>)?\s*(?:[A-Za-z_]\w*\s*::\s*)*([A-Za-z_]\w*)\s*(?:<[^{};]*)?\{", re.M)
FUNCTION = re.compile(r"\bfn\s+([a-z_]\w*)")
METHOD = re.compile(r"\bfn\s+([a-z_]\w*)\s*(?:<[^(]*>)?\(\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+)?self\b")
CALL = re.compile(r"\.\s*([a-z_]\w*)\s*(?:::\s*<[^(]*>\s*)?\(")
# Methods of collections, iterators and options that files call on other types than the crate's.
COMMON = set(
    """all any append as_ref bytes chain clear clone cmp collect contains count drain end entry eq extend filter finish find first
    flush fold get hash insert into is_empty iter join keys last len lines map max min next path peek pop push read remove
    replace reserve resize retain send sort split start sum swap take truncate values wait write zip""".split()
)
TOKEN = re.compile(r"\s*(::|[A-Za-z_]\w*|[{},*])")


def code(text):
    """The text without tests, comments and strings."""
    return WORDS.sub(" ", TESTS.split(text)[0])


def leaves(tree):
    """The paths, as lists of names, of the tree of a `use`, and the name that each has in the file (None of a glob)."""
    found, stack, here, named = [], [], [], None

    def leaf():
        if here and here[-1] != "{":
            path = here[:-1] if here[-1] == "self" and len(here) > 1 else here
            found.append((path, named or (None if path[-1] == "*" else path[-1])))

    at, alias = 0, False
    while match := TOKEN.match(tree, at):
        at, word = match.end(), match[1]
        if word == "{":
            stack.append(here)
        elif word in (",", "}"):
            leaf()
            if not stack:
                break
            if word == "}":
                stack.pop()
                here, named = ["{"], None
            else:
                here, named = stack[-1], None
        elif word == "as":
            alias = True
        elif word != "::":
            if alias:
                named, alias = word, False
            else:
                here = here + [word]
    leaf()
    return found


def inside(text, start):
    """The text from a position to the brace that closes the one before it."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start:at]
    return text[start:]


def modules(source):
    """The files of modules, by module path."""
    files = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if "tests" in parts[:-1]:
            continue
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        files.setdefault(tuple(parts), file)
    return files


class Crate:
    """The modules of a crate: what each imports, declares and uses."""

    def __init__(self, source):
        self.files = modules(source)
        self.imports, self.globs, self.declared, self.body, self.private = {}, {}, {}, {}, {}
        for module, file in self.files.items():
            text = code(file.read_text(encoding="utf-8"))
            names, globs, private = {}, [], []
            for match in USE.finditer(text):
                for path, name in leaves(match[2]):
                    if name is None:
                        globs.append((path[:-1], bool(match[1])))
                    else:
                        names[name] = path
                        if not match[1]:
                            private.append(path)
            self.imports[module], self.globs[module], self.private[module] = names, globs, private
            self.body[module] = USE.sub(" ", text)
            self.declared[module] = {a or b for a, b in DECLARED.findall(self.body[module])}
        self.methods = self.methods_of_other_files()

    def methods_of_other_files(self):
        """The module of each method whose `impl` stands in another file than its type."""
        functions = collections.Counter(name for body in self.body.values() for name in FUNCTION.findall(body))
        return {
            name: module
            for module, body in self.body.items()
            for head in IMPL.finditer(body)
            if " for " not in head[0] and head[1] not in self.declared[module]
            for name in METHOD.findall(inside(body, head.end()))
            if functions[name] == 1 and name not in COMMON
        }

    def start(self, module, path):
        """The module that a path begins in, and the rest of the path; None for another crate's path."""
        base, rest = list(module), list(path)
        if rest[0] == "crate":
            return (), rest[1:]
        if rest[0] not in ("self", "super"):
            known = rest[0] in self.imports[module] or (*module, rest[0]) in self.files
            return (tuple(base), rest) if known else None
        while rest and rest[0] in ("self", "super"):
            if rest[0] == "super":
                base = base[:-1]
            rest = rest[1:]
        return tuple(base), rest

    def target(self, module, path, seen=frozenset()):
        """The module whose file declares what a path in a module's file names; None if it is another crate's."""
        started = self.start(module, path)
        if started is None or (module, tuple(path)) in seen:
            return None
        seen = seen | {(module, tuple(path))}
        at, rest = started
        while rest and (*at, rest[0]) in self.files:
            at, rest = (*at, rest[0]), rest[1:]
        if at not in self.files:
            return None
        if not rest or rest[0] == "*" or rest[0] in self.declared[at]:
            return at
        if rest[0] in self.imports[at]:
            imported = self.imports[at][rest[0]]
            return self.target(at, imported + rest[1:], seen) if imported != path or at != module else at
        for glob, _ in self.globs[at]:
            origin = self.target(at, glob, seen)
            if origin and origin != at and (rest[0] in self.declared[origin] or rest[0] in self.imports[origin]):
                return self.target(origin, ["self", *rest], seen)
        return at

    def uses(self, module):
        """The modules whose files a module's file uses."""
        body = self.body[module]
        paths = list(self.private[module]) + [[*path, "*"] for path, public in self.globs[module] if not public]
        paths += [path for name, path in self.imports[module].items() if re.search(rf"(?<!::)\b{name}\b", body)]
        paths += [re.split(r"\s*::\s*", match[0]) for match in PATH.finditer(body)]
        called = {self.methods.get(name) for name in CALL.findall(body)}
        return (called | {self.target(module, path) for path in paths}) - {None, module}


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


def shown(found):
    """Modules as text."""
    return " ".join("::".join(module) or "lib" for module in sorted(found))


def main():
    sys.setrecursionlimit(10_000)
    bad = False
    root = pathlib.Path(__file__).resolve().parent.parent
    arguments = [pathlib.Path(word) for word in sys.argv[1:] if word != "-v"]
    for source in arguments or [root / "src", *sorted(root.glob("crates/*/src"))]:
        name = "tr" if source == root / "src" else source.parent.name
        crate = Crate(source)
        graph = {module: crate.uses(module) for module in crate.files}
        found = sorted(circles(graph), key=len, reverse=True)
        if "-v" in sys.argv[1:] and found:
            print(f"{name}: {len(found[0])} of {len(graph)} files")
            for circle in found:
                for module in circle if len(circle) > 1 else ():
                    print(f"    {shown([module])} -> {shown(graph[module] & set(circle))}")
        for circle in found:
            if len(circle) > MOST:
                bad = True
                print(f"layers: {name}: {len(circle)} files use each other: {shown(circle)}", file=sys.stderr)
    sys.exit(bad)


if __name__ == "__main__":
    main()

"""Scripts/check-house finds what it should, and nothing else."""

import contextlib
import importlib.machinery
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent


def load():
    """The script as a module: starting Python for each case would take seconds."""
    loader = importlib.machinery.SourceFileLoader("check_house", str(TOP / "Scripts/check-house"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("check_house", loader))
    loader.exec_module(module)
    return module


check_house = load()


def offences_in(folder) -> list[str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        count = check_house.check(Path(folder))
    lines = said.getvalue().splitlines()
    assert count == len(lines), lines
    return lines


def offences(files: dict) -> list[str]:
    """What check-house says of a package that holds these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return offences_in(folder)


def source(room: str, text: str) -> dict:
    return {f"Sources/{room}/File.swift": text}


class CheckHouse(unittest.TestCase):
    def assert_finds(self, files: dict, what: str):
        found = offences(files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(what, found[0])

    def assert_passes(self, files: dict):
        self.assertEqual(offences(files), [])

    def test_this_house(self):
        self.assertEqual(offences_in(TOP), [])

    def test_rules_and_limits_have_tests(self):
        page = ("# Page\n\n## Limits\n\n| what | limit |\n|---|---|\n| handle | 2 |\n\n"
                "## The rules\n\n1. Order.\n2. No holes.\n")
        named = '@Test("Rule 1: order") @Test("Rule 2: holes: none") @Test("Limit: handle")'

        def package(tests):
            return {check_house.PROTOCOL: page, "Tests/SomeTests/File.swift": tests}

        self.assert_passes(package(named))
        self.assert_finds(package(named.replace("Rule 2", "Rules 2")), "the rule '2'")
        self.assert_finds(package(named + '@Test("Rule 3: new")'), "the rule '3', of which")
        self.assert_passes(package(named.replace("handle", "handle: over the wire")))
        self.assert_finds(package(named.replace("Limit:", "Limits:")), "the limit 'handle'")

    def test_imports_go_down(self):
        for room, module in (
            ("VencejoRPC", "VencejoHTTP2"), ("VencejoConsole", "VencejoTools"),
            ("vencejo", "VencejoServer"), ("VencejoHTTP2", "CNGHTTP2"), ("VencejoAPI", "Glibc"),
        ):
            self.assert_passes(source(room, f"import {module}\n"))

    def test_imports_do_not_go_up_or_sideways(self):
        for room, module in (
            ("VencejoHTTP2", "VencejoRPC"), ("VencejoStore", "VencejoAPI"),
            ("VencejoServer", "VencejoClient"), ("VencejoCrypto", "VencejoSQLite"),
            ("VencejoRPC", "VencejoGenerator"),
        ):
            for form in (f"import {module}", f"public import {module}",
                         f"@testable internal import struct {module}.Thing"):
                self.assert_finds(source(room, form + "\n"), "lower half or floor")

    def test_other_imports(self):
        self.assert_finds(source("VencejoRPC", "import NIOCore\n"), "no room of this house")
        self.assert_finds(source("VencejoRPC", "import CNGHTTP2\n"), "only floor 1a")
        self.assert_finds(source("VencejoRPC", "import Foundation\n"), "does without Foundation")
        self.assert_finds(source("VencejoClient", "import FoundationEssentials\n"), "does without")
        self.assert_passes(source("VencejoConsole", "import FoundationEssentials\n"))
        self.assert_finds(source("Elsewhere", "let x = 1\n"), "has no floor")

    def test_traps_need_a_reason(self):
        for line in ("let x = try! f()", "let x = y as! Z", 'fatalError("no")', "unowned let x: Y",
                     "final class C: @unchecked Sendable {}", "nonisolated(unsafe) var x = 1"):
            files = source("VencejoRPC", f"let a = 1\n\n{line}\n")
            self.assertEqual(len(offences(files)), 1, line)
            self.assert_passes(source("VencejoRPC", f"// Only ever {{}}.\n{line}\n"))
            self.assert_passes(source("VencejoRPC", f"{line}  // f cannot fail here\n"))

    def test_no_reason_excuses_a_miscompilation(self):
        text = "// Because.\nnonisolated(nonsending) func f() async {}\n"
        self.assert_finds(source("VencejoRPC", text), "miscompiled")
        self.assert_passes(source("VencejoRPC", "// No nonisolated(nonsending) here.\n"))

    def test_the_store_pages_by_key(self):
        for sql in ('"SELECT 1 LIMIT 10 OFFSET 20"', '''"... WHERE x LIKE '%y'"'''):
            self.assert_finds(source("VencejoStore", f"let sql = {sql}\n"), "pages by key")

    def test_only_programs_print(self):
        self.assert_finds(source("VencejoRPC", 'print("hi")\n'), "only the programs")
        self.assert_passes(source("vencejo", 'print("hi")\n'))
        self.assert_passes(source("VencejoRPC", 'func fingerprint(_ x: Int) {}\nx.print("hi")\n'))
        self.assert_passes(source("VencejoJSON", 'func print(_ x: Int) {}\nprint(1)\n'))

    def test_streams_are_bounded(self):
        self.assert_finds(source("VencejoRPC", "let s = AsyncStream<Int>.makeStream()\n"), "unbounded")
        self.assert_passes(source("VencejoRPC", "let s: AsyncStream<Int>.Continuation\n"))
        self.assert_passes(source(
            "VencejoRPC", "let s = AsyncStream.makeStream(\n  of: Int.self,\n  bufferingPolicy: .x)\n"))

    def test_no_sleep_in_tests(self):
        text = "func t() async throws { try await Task.sleep(for: .seconds(1)) }\n"
        self.assert_finds({"Tests/VencejoRPCTests/T.swift": text}, "no test sleeps")
        self.assert_finds({"Tests/Interop/t.py": "time.sleep(1)\n"}, "no test sleeps")
        self.assert_passes({"Tests/Interop/t.py": "# The peer is slow on purpose.\ntime.sleep(1)\n"})

    def test_long_files_and_generated_ones(self):
        self.assert_finds(source("VencejoRPC", "let a = 1\n" * 501), "at most 500")
        self.assert_passes(source("VencejoAPI", "// Generated. DO NOT EDIT.\n" + "let a = 1\n" * 900))

    def test_top_level_and_paths_of_one_machine(self):
        self.assert_finds({"Stuff/x": ""}, "top level")
        self.assert_finds(source("VencejoRPC", 'let p = "/home/ana/x"\n'), "path of one machine")


if __name__ == "__main__":
    unittest.main()

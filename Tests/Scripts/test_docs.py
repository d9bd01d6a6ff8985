"""The code that the documentation shows is code that is compiled."""

import re
import unittest

import stubs

CATALOG = stubs.TOP / "Sources/VencejoRPC/VencejoRPC.docc"
# Each page and the file that compiles its examples.
COMPILED = {
    "Calls.md": "Tests/VencejoRPCTests/CallExamples.swift",
    "Channels.md": "Tests/VencejoRPCTests/DocExamples.swift",
    "Servers.md": "Tests/VencejoRPCTests/DocExamples.swift",
    "Messages.md": "Tests/VencejoJSONTests/DocExamples.swift",
    "Interceptors.md": "Tests/VencejoObservabilityTests/DocExamples.swift",
    "Observability.md": "Tests/VencejoObservabilityTests/DocExamples.swift",
}


class Docs(unittest.TestCase):
    def test_examples_are_compiled(self):
        for page, path in COMPILED.items():
            compiled = (stubs.TOP / path).read_text()
            examples = re.findall(r"```swift\n(.*?)```", (CATALOG / page).read_text(), re.S)
            self.assertTrue(examples, page)
            for example in examples:
                self.assertIn(example, compiled, f"an example of {page} is not in {path}")

    def test_reasons_of_errors_are_told(self):
        """Whatever the messenger may answer stands in the protocol's table."""
        page = (stubs.TOP / "Sources/VencejoServer/VencejoServer.docc/ChatProtocol.md").read_text()
        told = re.findall(r"`([A-Z_]+)(…?)`", page)
        words = {word for word, more in told if not more}
        prefixes = tuple(word for word, more in told if more)
        # The operator's, who reads them where the program runs.
        operator = ("DATA_FOLDER_", "BACKUP_", "NEWER_SCHEMA", "NOT_A_DATABASE", "NO_THREAD",
                    "SERVER_SILENT", "FILE_UNREADABLE")
        missing, found = [], 0
        for room in ("VencejoStore", "VencejoServer"):
            for path in (stubs.TOP / "Sources" / room).rglob("*.swift"):
                if "Record" in str(path):
                    continue
                for reason in re.findall(
                        r"(?:StoreError\(\s*\.\w+,|\.invalid\(\s*\"[^\"]*\",|\.notFound\()\s*\"([A-Z_]+)\"",
                        path.read_text()):
                    found += 1
                    if reason not in words and not reason.startswith(prefixes + operator):
                        missing.append(f"{path.name}: {reason}")
        self.assertGreater(found, 100)
        self.assertEqual(missing, [])

    def test_pages_named_are_there(self):
        for page in CATALOG.glob("*.md"):
            for name in re.findall(r"<doc:(\w+)>", page.read_text()):
                self.assertTrue((CATALOG / f"{name}.md").exists(), f"{page.name}: {name}")


if __name__ == "__main__":
    unittest.main()

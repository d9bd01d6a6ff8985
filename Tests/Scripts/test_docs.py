"""The code that the documentation shows is code that is compiled."""

import re
import unittest

import stubs

CATALOG = stubs.TOP / "Sources/VencejoRPC/VencejoRPC.docc"
# Each page and the file that compiles its examples.
COMPILED = {
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

    def test_pages_named_are_there(self):
        for page in CATALOG.glob("*.md"):
            for name in re.findall(r"<doc:(\w+)>", page.read_text()):
                self.assertTrue((CATALOG / f"{name}.md").exists(), f"{page.name}: {name}")


if __name__ == "__main__":
    unittest.main()

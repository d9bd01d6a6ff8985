"""What only test builds do, the release build refuses: it does not pretend."""

import os
import subprocess
import tempfile
import unittest

import harness
from harness import LIMIT


class Release(unittest.TestCase):
    def test_settings_of_tests_are_refused(self):
        for variable, value in (("VENCEJO_TEST", "sweep=50"), ("VENCEJO_MUTATION", "drop-event")):
            with self.subTest(variable), tempfile.TemporaryDirectory() as data:
                ended = subprocess.run(
                    [harness.program(), "serve", "--listen", "127.0.0.1:0", "--data", data],
                    capture_output=True, text=True, timeout=LIMIT,
                    env={**os.environ, variable: value})
                self.assertNotEqual(ended.returncode, 0)
                self.assertIn("BAD_TEST_SETTING", ended.stderr)
                self.assertEqual(ended.stdout, "")


if __name__ == "__main__":
    unittest.main()

"""The backend from C++."""

import unittest

import cpp
import harness
from base import ServerCase
from test_echo import drive


class CppClient(ServerCase):
    def test_services(self):
        # Its first person signs up in an empty folder and so is administrator.
        drive(self, [cpp.built("services_client"), self.server.address])


if __name__ == "__main__":
    unittest.main()

"""A TestCase with a server for the class and an assertion for failed calls."""

import re
import unittest

import grpc

import harness

DOMAINS = {"auth": "auth.vencejo", "chat": "chat.vencejo", "record": "record.vencejo"}


class ServerCase(unittest.TestCase):
    """One server per class, on a data folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.server = harness.Server()
        cls.addClassCleanup(cls.server.close)

    def person(self, handle: str, **options) -> harness.Person:
        person = harness.Person(self.server.address, handle, **options)
        self.addCleanup(person.close)
        return person

    def fails(self, call, code: grpc.StatusCode, reason: str = "", service: str = ""):
        """The call fails with this code and says why in an ErrorInfo; returns its metadata."""
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        error = caught.exception
        self.assertEqual(error.code(), code, error.details())
        self.assertTrue(error.details(), "no message")
        said, domain, metadata = harness.error_info(error)
        self.assertRegex(said, re.compile(r"^[A-Z][A-Z0-9_]*$"))
        if reason:
            self.assertEqual(said, reason, error.details())
        if service:
            self.assertEqual(domain, DOMAINS[service])
        return metadata

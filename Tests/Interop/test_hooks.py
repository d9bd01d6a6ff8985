"""Hooks as a receiver sees them, and the program of the page about phones."""

import http.server
import json
import os
import re
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from queue import Queue

import harness
import stubs
from base import ServerCase
from harness import Peer, new_id
from vencejo.chat.v1 import chat_pb2

PAGES = stubs.TOP / "Sources/VencejoServer/VencejoServer.docc"


class Receiver:
    """Keeps what is posted to it; answers with what is in `answers`, then with 200."""

    def __init__(self, answers=()):
        self.got = Queue()
        answers = list(answers)
        got = self.got

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                got.put(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(answers.pop(0) if answers else 200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        return self.got.get(timeout=harness.LIMIT)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Hooks(ServerCase):
    @classmethod
    def setUpClass(cls):
        cls.server = harness.Server("--hook-network", "127.0.0.0/8")
        cls.addClassCleanup(cls.server.close)

    def push(self, person, url: str, secret: str = ""):
        return person.call(person.chat.CreatePushEndpoint, chat_pb2.CreatePushEndpointRequest(
            push_endpoint=chat_pb2.PushEndpoint(
                http_hook=chat_pb2.HttpHookTarget(uri=url, signing_secret=secret)))).push_endpoint

    def endpoint(self, person):
        return person.call(
            person.chat.ListPushEndpoints, chat_pb2.ListPushEndpointsRequest()).push_endpoints[0]

    def pair(self):
        ana, ben = (self.person(f"{name}-{new_id()[-6:]}") for name in ("ana", "ben"))
        return ana, ben, ana.direct_chat(ben)

    def test_the_page_about_phones(self):
        firebase = Receiver()
        self.addCleanup(firebase.close)
        ana, ben, chat = self.pair()
        page = (PAGES / "ReachingPhones.md").read_text()
        program = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        with tempfile.TemporaryDirectory() as folder:
            phones = Path(folder, "phones.json")
            phones.write_text(json.dumps({ben.name: "token of ben's phone"}))
            relay = Peer(
                [sys.executable, "-c", program],
                env={"PORT": "0", "PHONES": str(phones), "FIREBASE_URL": firebase.url,
                     "FIREBASE_TOKEN": "oauth", "HOOK_SECRET": "whsec_" + "A" * 44})
            try:
                made = self.push(ben, f"http://{relay.address}/", "whsec_" + "A" * 44)
                ana.send(chat.name, "hola, ñ")
                headers, body = firebase.next()
                self.assertEqual(headers["authorization"], "Bearer oauth")
                self.assertEqual(json.loads(body)["message"], {
                    "token": "token of ben's phone", "data": {"chat": chat.name},
                    "notification": {"title": ana.handle.capitalize(), "body": "hola, ñ"}})
                ben.call(ben.chat.DeletePushEndpoint,
                         chat_pb2.DeletePushEndpointRequest(name=made.name))
                # With another secret it is refused, and the server says so.
                self.push(ben, f"http://{relay.address}/")
                ana.send(chat.name, "again")
                deadline = time.monotonic() + harness.LIMIT
                while not self.endpoint(ben).fault and time.monotonic() < deadline:
                    pass
                self.assertEqual(self.endpoint(ben).fault, "answered with 401")
                self.assertTrue(firebase.got.empty())
            finally:
                relay.kill()

    def test_what_waits_outlives_kill_9(self):
        receiver = Receiver([503])
        self.addCleanup(receiver.close)
        ana, ben, chat = self.pair()
        self.push(ben, receiver.url)
        ana.send(chat.name, "one")
        first, _ = receiver.next()
        self.server.kill()
        self.server.start()
        second, body = receiver.next()
        self.assertEqual(first["webhook-id"], second["webhook-id"])
        self.assertEqual(json.loads(body)["message"]["content"]["text"]["text"], "one")


if __name__ == "__main__":
    unittest.main()

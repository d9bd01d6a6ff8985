"""Tables of gRPC's documents, row by row, with a frame-exact server against our client:
http-grpc-status-mapping.md, PROTOCOL-HTTP2.md ("Errors", "Responses"), statuscodes.md."""

import base64
import subprocess
import unittest

from frameserver import HEAD, FrameServer, block
from interop_programs import swift
from wire import message

(OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS,
 PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED,
 INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED) = range(17)

EMPTY = message(b"")


class Outcome:
    def __init__(self, line: str):
        code, text, initial, trailing = line.split(" ")
        self.code, self.message = int(code), bytes.fromhex(text).decode()
        self.initial, self.trailing = self._metadata(initial), self._metadata(trailing)

    @staticmethod
    def _metadata(text: str):
        return [(entry.split("=")[0], bytes.fromhex(entry.split("=")[1]))
                for entry in text.split(",") if entry]


class Script(FrameServer):
    """Answers the n-th call with the n-th of the answers."""

    def __init__(self, answers):
        self.answers = list(answers)
        super().__init__()

    def served(self, stream):
        if self.answers:
            self.answers.pop(0)(stream)


class Rows(unittest.TestCase):
    def outcomes(self, *answers, unary=False) -> list[Outcome]:
        server = Script(answers)
        ended = subprocess.run(
            [swift("client"), "--server_host=127.0.0.1", f"--server_port={server.port}",
             "--test_case=report", f"--calls={len(answers)}", f"--unary={str(unary).lower()}"],
            capture_output=True, text=True, timeout=60)
        server.close()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = [line for line in ended.stdout.split("\n") if line and not line.startswith("report")]
        self.assertEqual(len(lines), len(answers), ended.stdout)
        return [Outcome(line) for line in lines]

    def codes(self, rows: dict, **options):
        """Each key's answer ends with its code; `rows` is {name: (answer, code)}."""
        found = self.outcomes(*(answer for answer, _ in rows.values()), **options)
        self.assertEqual({name: outcome.code for name, outcome in zip(rows, found)},
                         {name: code for name, (_, code) in rows.items()})

    def test_http_status(self):
        rows = {}
        for status, code in {400: INTERNAL, 401: UNAUTHENTICATED, 403: PERMISSION_DENIED,
                             404: UNIMPLEMENTED, 429: UNAVAILABLE, 431: INTERNAL, 502: UNAVAILABLE,
                             503: UNAVAILABLE, 504: UNAVAILABLE, 500: UNKNOWN, 302: UNKNOWN,
                             405: UNKNOWN, 418: UNKNOWN, 200: UNKNOWN}.items():
            fields = block((":status", str(status)), ("content-type", "text/html"))

            def alone(stream, fields=fields):
                stream.headers(fields, end=True)

            def with_a_page(stream, fields=fields):
                stream.headers(fields)
                stream.data_frames(b"<html>a page</html>")
                stream.headers(block(("x-end", "1")), end=True)

            rows[f"{status} alone"], rows[f"{status} with a page"] = (alone, code), (with_a_page, code)
        self.codes(rows)

    def test_grpc_status_counts_more_than_http_status(self):
        def answer(stream):
            stream.headers(block((":status", "503"), ("content-type", "application/grpc"),
                                 ("grpc-status", "5"), ("grpc-message", "no such thing")), end=True)
        [found] = self.outcomes(answer)
        self.assertEqual((found.code, found.message), (NOT_FOUND, "no such thing"))

    def test_informational_responses_are_skipped(self):
        def answer(stream):
            stream.headers(block((":status", "103"), ("link", "</style.css>")))
            stream.headers()
            stream.data_frames(EMPTY)
            stream.trailers()
        self.codes({"103": (answer, OK)})

    def test_reset_codes(self):
        table = {0: INTERNAL, 1: INTERNAL, 2: INTERNAL, 3: INTERNAL, 4: INTERNAL, 6: INTERNAL,
                 7: UNAVAILABLE, 8: CANCELLED, 9: INTERNAL, 10: INTERNAL, 11: RESOURCE_EXHAUSTED,
                 12: PERMISSION_DENIED}
        rows = {}
        for reset, code in table.items():
            def at_once(stream, reset=reset):
                stream.rst(reset)

            def after_headers(stream, reset=reset):
                stream.headers()
                stream.rst(reset)

            def after_a_message(stream, reset=reset):
                stream.headers()
                stream.data_frames(EMPTY)
                stream.rst(reset)

            if reset != 7:  # REFUSED_STREAM at once is tried again, unseen
                rows[f"{reset} at once"] = (at_once, code)
            rows[f"{reset} after headers"] = (after_headers, code)
            rows[f"{reset} after a message"] = (after_a_message, code)
        self.codes(rows)

    def test_a_refused_stream_is_tried_again(self):
        def refuse(stream):
            stream.rst(7)

        def serve(stream):
            stream.headers()
            stream.data_frames(EMPTY)
            stream.trailers()

        server = Script([refuse, serve])
        ended = subprocess.run(
            [swift("client"), "--server_host=127.0.0.1", f"--server_port={server.port}",
             "--test_case=empty_unary"], capture_output=True, text=True, timeout=60)
        server.close()
        self.assertEqual((ended.returncode, server.answers), (0, []), ended.stderr)

    def test_a_reset_after_the_status_changes_nothing(self):
        def answer(stream):
            stream.headers()
            stream.data_frames(EMPTY)
            stream.trailers()
            stream.rst(0)
        self.codes({"NO_ERROR": (answer, OK)})

    def test_every_status(self):
        def trailers_only(status):
            return lambda stream: stream.headers(
                HEAD + block(("grpc-status", status), ("grpc-message", "why")), end=True)

        def trailers(status):
            def answer(stream):
                stream.headers()
                stream.trailers(("grpc-status", status), ("grpc-message", "why"))
            return answer

        rows = {}
        for status in range(1, 17):
            rows[f"{status} trailers only"] = (trailers_only(str(status)), status)
            rows[f"{status} trailers"] = (trailers(str(status)), status)
        # What is no status is UNKNOWN.
        for status in ("17", "99999999999999999999", "-1", "+5", "5x", "x", ""):
            rows[f"{status!r}"] = (trailers(status), UNKNOWN)
        rows["0000000005"] = (trailers("0000000005"), NOT_FOUND)
        self.codes(rows)

    def test_no_status_at_all(self):
        def nothing(stream):
            stream.headers()
            stream.data_frames(EMPTY)
            stream.headers(block(("x-end", "1")), end=True)

        def data_ends(stream):
            stream.headers()
            stream.connection.send(0, 1, stream.number, EMPTY)

        self.codes({"trailers without": (nothing, UNKNOWN), "no trailers": (data_ends, UNKNOWN)})

    def test_number_of_messages_of_a_unary_call(self):
        def answer(count):
            def run(stream):
                stream.headers()
                stream.data_frames(EMPTY * count)
                stream.trailers()
            return run
        self.codes({"none": (answer(0), UNIMPLEMENTED), "one": (answer(1), OK),
                    "two": (answer(2), UNIMPLEMENTED)}, unary=True)

    def test_messages_percent_encoded(self):
        texts = {b"plain": "plain", b"%41%E2%98%BA": "A☺", b"100%": "100%", b"%zz%4": "%zz%4",
                 b"%F0%9F%98%88%0a": "😈\n", b"": "", "☺".encode(): "☺"}

        def answer(text):
            return lambda stream: stream.headers(
                HEAD + block(("grpc-status", "2"), ("grpc-message", text)), end=True)
        found = self.outcomes(*(answer(text) for text in texts))
        self.assertEqual([one.message for one in found], list(texts.values()))

    def test_metadata_of_responses(self):
        binary = base64.b64encode(b"\xab\xcd")  # "q80=", which has padding

        def answer(stream):
            stream.headers(HEAD + block(
                ("x-one", "1"), ("x-one", "2"), ("x-list", "a, b"), ("x-padded-bin", binary),
                ("x-bare-bin", binary.rstrip(b"=")), ("x-list-bin", b"q80=,/w,, AA==")))
            stream.data_frames(EMPTY)
            stream.trailers(("grpc-status", "0"), ("x-end-bin", "AAE"), ("x-end", "3"))
        [found] = self.outcomes(answer)
        self.assertEqual(found.initial, [
            ("x-one", b"1"), ("x-one", b"2"), ("x-list", b"a, b"), ("x-padded-bin", b"\xab\xcd"),
            ("x-bare-bin", b"\xab\xcd"), ("x-list-bin", b"\xab\xcd"), ("x-list-bin", b"\xff"),
            ("x-list-bin", b""), ("x-list-bin", b"\0")])
        self.assertEqual(found.trailing, [("x-end-bin", b"\0\1"), ("x-end", b"3")])

    def test_metadata_larger_than_the_client_takes(self):
        def head(stream):
            stream.headers(HEAD + block(*((f"x-{i}", "a" * 1000) for i in range(15))) + block(
                *((f"y-{i}", "a" * 300) for i in range(4))))
            stream.data_frames(EMPTY)
            stream.trailers()

        def trailers(stream):
            stream.headers()
            stream.data_frames(EMPTY)
            stream.trailers(("grpc-status", "0"), *((f"x-{i}", "a" * 1000) for i in range(16)))

        def below(stream):
            stream.headers(HEAD + block(*((f"x-{i}", "a" * 1000) for i in range(14))))
            stream.data_frames(EMPTY)
            stream.trailers()
        # 16 KiB, counted as SETTINGS_MAX_HEADER_LIST_SIZE is.
        self.codes({"head": (head, RESOURCE_EXHAUSTED), "trailers": (trailers, RESOURCE_EXHAUSTED),
                    "below": (below, OK)})

    def test_another_content_type(self):
        def answer(kind, body=EMPTY):
            def run(stream):
                stream.headers(block((":status", "200"), ("content-type", kind)))
                stream.data_frames(body)
                stream.trailers()
            return run
        self.codes({
            "application/grpc+proto": (answer("application/grpc+proto"), OK),
            "application/grpc;x=1": (answer("application/grpc;x=1"), OK),
            "text/plain": (answer("text/plain", b"hello"), UNKNOWN),
        })


class Statuses(unittest.TestCase):
    """What our server sends: peers refuse more than 8 KiB of fields."""

    def test_long_messages_are_cut_with_a_mark(self):
        import harness
        import stubs
        import grpc
        from src.proto.grpc.testing import messages_pb2, test_pb2_grpc
        peer = harness.Peer([swift("server"), "--port=0", "--host=127.0.0.1"])
        self.addCleanup(peer.stop)
        with harness.channel(peer.address) as channel:
            stub = test_pb2_grpc.TestServiceStub(channel)
            for text in ("a" * 100_000, "☺" * 30_000, "%" * 50_000, "\n" * 9_000, "é́" * 9_000):
                with self.assertRaises(grpc.RpcError) as caught:
                    stub.UnaryCall(messages_pb2.SimpleRequest(response_status=messages_pb2.EchoStatus(
                        code=9, message=text)), timeout=20)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
                said = caught.exception.details()
                self.assertTrue(said.endswith("… (cut)"), said[-20:])
                self.assertTrue(text.startswith(said.removesuffix("… (cut)")))
                self.assertGreater(len(said), 300)
            short = "a" * 2_000 + "☺"
            with self.assertRaises(grpc.RpcError) as caught:
                stub.UnaryCall(messages_pb2.SimpleRequest(response_status=messages_pb2.EchoStatus(
                    code=9, message=short)), timeout=20)
            self.assertEqual(caught.exception.details(), short)


if __name__ == "__main__":
    unittest.main()

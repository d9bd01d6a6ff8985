"""What every server of interop.proto must do, checked with grpcio's client.

A base class without tests of its own to collect: the files that start a server
derive from it, one per implementation.
"""

import threading
import time

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

import harness
from harness import LIMIT
import interop_pb2
import interop_pb2_grpc

Request = interop_pb2.EchoRequest


class EchoChecks:
    """Mixed into a TestCase that sets `address`."""

    address = ""
    # For TLS.
    credentials = None

    def setUp(self):
        self.channel = harness.channel(self.address, credentials=self.credentials)
        self.addCleanup(self.channel.close)
        self.echo = interop_pb2_grpc.EchoStub(self.channel)

    def failed(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception

    # The four shapes.

    def test_unary(self):
        for payload in (b"", b"\x00", b"swift", bytes(range(256)) * 100):
            answer = self.echo.Unary(Request(payload=payload), timeout=LIMIT)
            self.assertEqual(answer.payload, payload)

    def test_server_stream(self):
        answers = list(self.echo.ServerStream(
            Request(payload=b"x", response_count=1000), timeout=LIMIT))
        self.assertEqual([answer.index for answer in answers], list(range(1000)))
        self.assertEqual({answer.payload for answer in answers}, {b"x"})

    def test_server_stream_without_an_answer(self):
        self.assertEqual(list(self.echo.ServerStream(Request(response_count=-1), timeout=LIMIT)), [])

    def test_client_stream(self):
        requests = (Request(payload=bytes([i % 256]) * i) for i in range(500))
        answer = self.echo.ClientStream(requests, timeout=LIMIT)
        self.assertEqual(answer.request_count, 500)
        self.assertEqual(answer.request_bytes, sum(range(500)))
        self.assertEqual(answer.payload, bytes([499 % 256]) * 499)

    def test_client_stream_without_a_request(self):
        self.assertEqual(self.echo.ClientStream(iter(()), timeout=LIMIT).request_count, 0)

    def test_bidirectional_in_lockstep(self):
        """Each request waits for the answer to the one before: nothing may be held back."""
        answered = threading.Semaphore(1)

        def requests():
            for number in range(100):
                answered.acquire(timeout=LIMIT)
                yield Request(payload=b"%d" % number)

        count = 0
        for answer in self.echo.Bidirectional(requests(), timeout=LIMIT):
            self.assertEqual(answer.payload, b"%d" % count)
            count += 1
            answered.release()
        self.assertEqual(count, 100)

    def test_many_calls_at_once(self):
        calls = [self.echo.Unary.future(Request(payload=b"%d" % i), timeout=LIMIT) for i in range(500)]
        self.assertEqual([call.result().payload for call in calls], [b"%d" % i for i in range(500)])

    # Sizes.

    def test_three_mebibytes_both_ways(self):
        payload = bytes(range(256)) * (3 << 12)
        self.assertEqual(len(payload), 3 << 20)
        self.assertEqual(self.echo.Unary(Request(payload=payload), timeout=LIMIT).payload, payload)
        stream = self.echo.Bidirectional(iter([Request(payload=payload)] * 3), timeout=LIMIT)
        self.assertEqual([answer.payload == payload for answer in stream], [True] * 3)

    def test_five_mebibytes_are_refused(self):
        error = self.failed(lambda: self.echo.Unary(Request(payload=bytes(5 << 20)), timeout=LIMIT))
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        # … and the connection goes on.
        self.assertEqual(self.echo.Unary(Request(payload=b"on"), timeout=LIMIT).payload, b"on")

    # Compression.

    def test_compressed_messages(self):
        payload = b"a" * 100_000
        for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            answer = self.echo.Unary(
                Request(payload=payload), timeout=LIMIT, compression=compression)
            self.assertEqual(answer.payload, payload)
            requests = [Request(payload=payload)] * 3
            total = self.echo.ClientStream(iter(requests), timeout=LIMIT, compression=compression)
            self.assertEqual(total.request_bytes, 300_000)
            answers = self.echo.Bidirectional(
                iter(requests), timeout=LIMIT, compression=compression)
            self.assertEqual([answer.payload == payload for answer in answers], [True] * 3)

    def test_a_small_message_that_is_large_inside(self):
        """64 MiB of zeros make 64 KiB: refused before they are unpacked."""
        for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            large = harness.channel(self.address, ("grpc.max_send_message_length", -1),
                                    credentials=self.credentials)
            echo = interop_pb2_grpc.EchoStub(large)
            error = self.failed(lambda: echo.Unary(
                Request(payload=bytes(64 << 20)), timeout=LIMIT, compression=kind))
            self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            large.close()
        self.assertEqual(self.echo.Unary(Request(payload=b"on"), timeout=LIMIT).payload, b"on")

    # Status and metadata.

    def test_every_status_code(self):
        for code in grpc.StatusCode:
            if code is grpc.StatusCode.OK:
                continue
            failure = interop_pb2.Failure(code=code.value[0], message=f"asked for {code.name}")
            error = self.failed(lambda: self.echo.Unary(Request(failure=failure), timeout=LIMIT))
            self.assertEqual((error.code(), error.details()), (code, failure.message))

    def test_message_beyond_ascii(self):
        text = "el vencejo duerme volando: ñ, 燕, 🐦, 100 %\t\n"
        failure = interop_pb2.Failure(code=3, message=text)
        error = self.failed(lambda: self.echo.Unary(Request(failure=failure), timeout=LIMIT))
        self.assertEqual(error.details(), text)

    def test_status_after_messages(self):
        failure = interop_pb2.Failure(code=9, message="enough")
        call = self.echo.ServerStream(Request(response_count=3, failure=failure), timeout=LIMIT)
        seen = []
        error = self.failed(lambda: seen.extend(answer.index for answer in call) or list(call))
        self.assertEqual(error.code(), grpc.StatusCode.FAILED_PRECONDITION)

    def test_status_details(self):
        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.ErrorInfo(
            reason="TRIED", domain="interop.vencejo", metadata={"ñ": "燕"}))
        failure = interop_pb2.Failure(code=10, message="with details", details=[detail])
        error = self.failed(lambda: self.echo.Unary(Request(failure=failure), timeout=LIMIT))
        status = rpc_status.from_call(error)
        self.assertEqual((status.code, status.message), (10, "with details"))
        self.assertEqual(list(status.details), [detail])

    def test_metadata_both_ways(self):
        sent = (
            ("x-initial-text", "plain, with commas"),
            ("x-initial-twice", "one"), ("x-initial-twice", "two"),
            ("x-initial-raw-bin", bytes(range(256))),
            ("x-trailing-text", "later"),
            ("x-trailing-raw-bin", b"\x00\xff,\x01"),
            ("x-trailing-empty-bin", b""),
        )
        answer, call = self.echo.Unary.with_call(Request(), metadata=sent, timeout=LIMIT)
        initial = [tuple(pair) for pair in call.initial_metadata() if pair[0].startswith("x-")]
        trailing = [tuple(pair) for pair in call.trailing_metadata() if pair[0].startswith("x-")]
        self.assertEqual(sorted(initial), sorted(sent[:4]))
        self.assertEqual(sorted(trailing), sorted(sent[4:]))
        # Values of one key keep their order.
        self.assertEqual([value for key, value in initial if key == "x-initial-twice"], ["one", "two"])

    def test_metadata_with_white_space_at_its_ends(self):
        """Not to be sent, but sent it is; it may come back stripped, and fails no call."""
        _, call = self.echo.Unary.with_call(
            Request(), metadata=(("x-initial-padded", "  both "),), timeout=LIMIT)
        values = [value for key, value in call.initial_metadata() if key == "x-initial-padded"]
        self.assertEqual([value.strip() for value in values], ["both"])

    # Deadlines and cancellation.

    def test_deadline_passes(self):
        began = time.monotonic()
        error = self.failed(lambda: self.echo.Unary(Request(delay_milliseconds=20_000), timeout=0.3))
        self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertLess(time.monotonic() - began, 5)

    def test_deadline_travels(self):
        answer = self.echo.Unary(Request(), timeout=15)
        self.assertGreater(answer.deadline_milliseconds, 10_000)
        # A little more is right: senders may round up, as grpcio does.
        self.assertLessEqual(answer.deadline_milliseconds, 15_500)
        self.assertLess(self.echo.Unary(Request(), wait_for_ready=True).deadline_milliseconds, 0)

    def hold(self, timeout: float):
        key = harness.new_id()
        call = self.echo.Hold(interop_pb2.HoldRequest(key=key), timeout=timeout)
        self.assertEqual(next(call).key, key)
        return key, call

    def ended(self, key: str):
        return self.echo.GetHold(
            interop_pb2.GetHoldRequest(key=key, wait_milliseconds=10_000), timeout=LIMIT)

    def test_cancellation_reaches_the_handler(self):
        late = []
        for _ in range(5):
            key, call = self.hold(LIMIT)
            cancelled = time.time_ns() // 1000
            call.cancel()
            held = self.ended(key)
            self.assertTrue(held.started and held.cancelled)
            late.append((held.cancel_time_micros - cancelled) / 1000)
            self.assertEqual(call.code(), grpc.StatusCode.CANCELLED)
        # The best of five: the limit is about the server, not about a busy machine.
        self.assertLess(min(late), 50, f"milliseconds until the handler knew: {late}")

    def test_deadline_ends_the_handler(self):
        key, call = self.hold(0.3)
        error = self.failed(lambda: next(call))
        self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertTrue(self.ended(key).cancelled)

    def test_lost_connection_ends_the_handler(self):
        other = harness.channel(self.address, credentials=self.credentials)
        key = harness.new_id()
        call = interop_pb2_grpc.EchoStub(other).Hold(
            interop_pb2.HoldRequest(key=key), timeout=LIMIT)
        next(call)
        other.close()
        self.assertTrue(self.ended(key).cancelled)

    # What is not there.

    def test_unknown_method_and_service(self):
        for path in ("/vencejo.interop.v1.Echo/Nothing", "/nobody.Here/Call"):
            call = self.channel.unary_unary(path)
            error = self.failed(lambda: call(b"", timeout=LIMIT))
            self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED, path)

    def test_bytes_that_are_no_message(self):
        call = self.channel.unary_unary("/vencejo.interop.v1.Echo/Unary")
        for junk in (b"\xff", b"\x0a\x05ab", b"\x0b" * 200, b"\x08" + b"\xff" * 11):
            error = self.failed(lambda: call(junk, timeout=LIMIT))
            self.assertIn(error.code(), (
                grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNKNOWN))
        self.assertEqual(self.echo.Unary(Request(payload=b"on"), timeout=LIMIT).payload, b"on")

"""The client of gRPC's interoperability tests on grpcio, with the official flags.

grpcio tells nobody whether a message came compressed, and compresses all messages of a
stream or none: cases that need either are not here.
"""

import argparse
import sys
import threading

import grpc

from src.proto.grpc.testing import empty_pb2, messages_pb2, test_pb2_grpc

LIMIT = 20
LARGE = (271828, 314159)
SIZES = list(zip((31415, 9, 2653, 58979), (27182, 8, 1828, 45904)))


def zeros(size: int):
    return messages_pb2.Payload(body=bytes(size))


def large():
    return messages_pb2.SimpleRequest(response_size=LARGE[1], payload=zeros(LARGE[0]))


def duplex(*sizes: int, body: int):
    return messages_pb2.StreamingOutputCallRequest(
        response_parameters=[messages_pb2.ResponseParameters(size=size) for size in sizes],
        payload=zeros(body))


def check(response, size: int):
    assert response.payload.body == bytes(size), f"{len(response.payload.body)} bytes, not {size}"


def fails(call, code: grpc.StatusCode):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()} {error.details()}"
        return error
    raise AssertionError("the call succeeded")


class Feeder:
    """Requests that are sent when they are there."""

    def __init__(self):
        self.there = threading.Condition()
        self.queue, self.ended = [], False

    def put(self, *requests, end=False):
        with self.there:
            self.queue += requests
            self.ended = self.ended or end
            self.there.notify()

    def __iter__(self):
        return self

    def __next__(self):
        with self.there:
            self.there.wait_for(lambda: self.queue or self.ended, LIMIT)
            if not self.queue:
                raise StopIteration
            return self.queue.pop(0)


class Cases:
    def __init__(self, channel):
        self.stub = test_pb2_grpc.TestServiceStub(channel)
        self.other = test_pb2_grpc.UnimplementedServiceStub(channel)

    def empty_unary(self):
        assert self.stub.EmptyCall(empty_pb2.Empty(), timeout=LIMIT) == empty_pb2.Empty()

    def large_unary(self):
        check(self.stub.UnaryCall(large(), timeout=LIMIT), LARGE[1])

    def client_compressed_unary(self):
        request = large()
        request.expect_compressed.value = True
        fails(lambda: self.stub.UnaryCall(request, timeout=LIMIT), grpc.StatusCode.INVALID_ARGUMENT)
        check(self.stub.UnaryCall(request, timeout=LIMIT, compression=grpc.Compression.Gzip), LARGE[1])
        check(self.stub.UnaryCall(request, timeout=LIMIT, compression=grpc.Compression.Deflate), LARGE[1])
        request.expect_compressed.value = False
        check(self.stub.UnaryCall(request, timeout=LIMIT), LARGE[1])

    def client_streaming(self):
        requests = [messages_pb2.StreamingInputCallRequest(payload=zeros(size))
                    for size in (27182, 8, 1828, 45904)]
        answer = self.stub.StreamingInputCall(iter(requests), timeout=LIMIT)
        assert answer.aggregated_payload_size == 74922, answer

    def server_streaming(self):
        sizes = [size for size, _ in SIZES]
        answers = list(self.stub.StreamingOutputCall(duplex(*sizes, body=0), timeout=LIMIT))
        assert len(answers) == len(sizes), len(answers)
        for answer, size in zip(answers, sizes):
            check(answer, size)

    def ping_pong(self):
        feeder = Feeder()
        call = self.stub.FullDuplexCall(feeder, timeout=LIMIT)
        for size, body in SIZES:
            feeder.put(duplex(size, body=body))
            check(next(call), size)
        feeder.put(end=True)
        assert list(call) == []

    def empty_stream(self):
        assert list(self.stub.FullDuplexCall(iter(()), timeout=LIMIT)) == []

    def custom_metadata(self):
        sent = (("x-grpc-test-echo-initial", "test_initial_metadata_value"),
                ("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab"))

        def check_metadata(call):
            assert sent[0] in [tuple(one) for one in call.initial_metadata()], call.initial_metadata()
            assert sent[1] in [tuple(one) for one in call.trailing_metadata()], call.trailing_metadata()

        _, call = self.stub.UnaryCall.with_call(large(), timeout=LIMIT, metadata=sent)
        check_metadata(call)
        call = self.stub.FullDuplexCall(
            iter([duplex(LARGE[1], body=LARGE[0])]), timeout=LIMIT, metadata=sent)
        [answer] = list(call)
        check(answer, LARGE[1])
        check_metadata(call)

    def status_code_and_message(self):
        wanted = messages_pb2.EchoStatus(code=2, message="test status message")
        for call in (
            lambda: self.stub.UnaryCall(
                messages_pb2.SimpleRequest(response_status=wanted), timeout=LIMIT),
            lambda: list(self.stub.FullDuplexCall(
                iter([messages_pb2.StreamingOutputCallRequest(response_status=wanted)]), timeout=LIMIT)),
        ):
            assert fails(call, grpc.StatusCode.UNKNOWN).details() == wanted.message

    def special_status_message(self):
        wanted = messages_pb2.EchoStatus(
            code=2, message="\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n")
        error = fails(lambda: self.stub.UnaryCall(
            messages_pb2.SimpleRequest(response_status=wanted), timeout=LIMIT), grpc.StatusCode.UNKNOWN)
        assert error.details() == wanted.message, repr(error.details())

    def unimplemented_method(self):
        fails(lambda: self.stub.UnimplementedCall(empty_pb2.Empty(), timeout=LIMIT),
              grpc.StatusCode.UNIMPLEMENTED)

    def unimplemented_service(self):
        fails(lambda: self.other.UnimplementedCall(empty_pb2.Empty(), timeout=LIMIT),
              grpc.StatusCode.UNIMPLEMENTED)

    def cancel_after_begin(self):
        feeder = Feeder()
        call = self.stub.StreamingInputCall.future(feeder, timeout=LIMIT)
        call.cancel()
        feeder.put(end=True)
        assert call.cancelled() and call.code() == grpc.StatusCode.CANCELLED, call.code()

    def cancel_after_first_response(self):
        feeder = Feeder()
        call = self.stub.FullDuplexCall(feeder, timeout=LIMIT)
        feeder.put(duplex(31415, body=27182))
        check(next(call), 31415)
        call.cancel()
        feeder.put(end=True)
        fails(lambda: next(call), grpc.StatusCode.CANCELLED)

    def timeout_on_sleeping_server(self):
        feeder = Feeder()
        call = self.stub.FullDuplexCall(feeder, timeout=0.001)
        feeder.put(duplex(body=27182))
        fails(lambda: next(call), grpc.StatusCode.DEADLINE_EXCEEDED)
        feeder.put(end=True)

    def rpc_soak(self):
        for _ in range(10):
            self.large_unary()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server_host", default="localhost")
    parser.add_argument("--server_port", type=int, required=True)
    parser.add_argument("--test_case", required=True)
    parser.add_argument("--use_tls", default="false")
    parser.add_argument("--use_test_ca", default="false")
    parser.add_argument("--ca_file")
    parser.add_argument("--server_host_override")
    flags = parser.parse_args()

    options = [("grpc.max_receive_message_length", 8 << 20)]
    if flags.server_host_override:
        options.append(("grpc.ssl_target_name_override", flags.server_host_override))
    address = f"{flags.server_host}:{flags.server_port}"

    def channel():
        if flags.use_tls != "true":
            return grpc.insecure_channel(address, options)
        with open(flags.ca_file, "rb") as roots:
            return grpc.secure_channel(address, grpc.ssl_channel_credentials(roots.read()), options)

    if flags.test_case == "channel_soak":
        for _ in range(10):
            with channel() as one:
                Cases(one).large_unary()
        return 0
    with channel() as one:
        getattr(Cases(one), flags.test_case)()
    return 0


if __name__ == "__main__":
    sys.exit(main())

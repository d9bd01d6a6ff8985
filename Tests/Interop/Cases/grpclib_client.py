"""The client of gRPC's interoperability tests on grpclib, with the official flags.

grpclib shares nothing with grpcio: its HTTP/2 is python-hyper's h2. It knows no compression.
"""

import argparse
import asyncio
import ssl
import sys

from grpclib.client import (
    Channel, StreamStreamMethod, StreamUnaryMethod, UnaryStreamMethod, UnaryUnaryMethod)
from grpclib.config import Configuration
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from src.proto.grpc.testing import empty_pb2, messages_pb2

LIMIT = 20
LARGE = (271828, 314159)
SIZES = list(zip((31415, 9, 2653, 58979), (27182, 8, 1828, 45904)))
METADATA = {"x-grpc-test-echo-initial": "test_initial_metadata_value",
            "x-grpc-test-echo-trailing-bin": b"\xab\xab\xab"}
SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"


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


async def fails(awaitable, status: Status):
    try:
        await awaitable
    except GRPCError as error:
        assert error.status is status, error
        return error
    raise AssertionError("the call succeeded")


def check_metadata(stream):
    for metadata, key in ((stream.initial_metadata, "x-grpc-test-echo-initial"),
                          (stream.trailing_metadata, "x-grpc-test-echo-trailing-bin")):
        assert metadata[key] == METADATA[key], metadata


class Cases:
    def __init__(self, channel):
        m, service = messages_pb2, "/grpc.testing.TestService/"
        empty = empty_pb2.Empty, empty_pb2.Empty
        output = m.StreamingOutputCallRequest, m.StreamingOutputCallResponse
        self.empty = UnaryUnaryMethod(channel, service + "EmptyCall", *empty)
        self.unary = UnaryUnaryMethod(
            channel, service + "UnaryCall", m.SimpleRequest, m.SimpleResponse)
        self.input = StreamUnaryMethod(channel, service + "StreamingInputCall",
                                       m.StreamingInputCallRequest, m.StreamingInputCallResponse)
        self.output = UnaryStreamMethod(channel, service + "StreamingOutputCall", *output)
        self.duplex = StreamStreamMethod(channel, service + "FullDuplexCall", *output)
        self.unknown = UnaryUnaryMethod(channel, service + "UnimplementedCall", *empty)
        self.other = UnaryUnaryMethod(
            channel, "/grpc.testing.UnimplementedService/UnimplementedCall", *empty)

    async def empty_unary(self):
        assert await self.empty(empty_pb2.Empty(), timeout=LIMIT) == empty_pb2.Empty()

    async def large_unary(self):
        check(await self.unary(large(), timeout=LIMIT), LARGE[1])

    async def client_streaming(self):
        requests = [messages_pb2.StreamingInputCallRequest(payload=zeros(size))
                    for size in (27182, 8, 1828, 45904)]
        answer = await self.input(requests, timeout=LIMIT)
        assert answer.aggregated_payload_size == 74922, answer

    async def server_streaming(self):
        sizes = [size for size, _ in SIZES]
        answers = await self.output(duplex(*sizes, body=0), timeout=LIMIT)
        assert len(answers) == len(sizes), len(answers)
        for answer, size in zip(answers, sizes):
            check(answer, size)

    async def ping_pong(self):
        async with self.duplex.open(timeout=LIMIT) as stream:
            for size, body in SIZES:
                await stream.send_message(duplex(size, body=body))
                check(await stream.recv_message(), size)
            await stream.end()
            assert await stream.recv_message() is None

    async def empty_stream(self):
        async with self.duplex.open(timeout=LIMIT) as stream:
            await stream.send_request(end=True)
            assert await stream.recv_message() is None

    async def custom_metadata(self):
        async with self.unary.open(timeout=LIMIT, metadata=METADATA) as stream:
            await stream.send_message(large(), end=True)
            check(await stream.recv_message(), LARGE[1])
            await stream.recv_trailing_metadata()
        check_metadata(stream)
        async with self.duplex.open(timeout=LIMIT, metadata=METADATA) as stream:
            await stream.send_message(duplex(LARGE[1], body=LARGE[0]), end=True)
            check(await stream.recv_message(), LARGE[1])
            assert await stream.recv_message() is None
            await stream.recv_trailing_metadata()
        check_metadata(stream)

    async def status_code_and_message(self):
        wanted = messages_pb2.EchoStatus(code=2, message="test status message")
        for call in (self.unary(messages_pb2.SimpleRequest(response_status=wanted), timeout=LIMIT),
                     self.duplex([messages_pb2.StreamingOutputCallRequest(response_status=wanted)],
                                 timeout=LIMIT)):
            assert (await fails(call, Status.UNKNOWN)).message == wanted.message

    async def special_status_message(self):
        request = messages_pb2.SimpleRequest(
            response_status=messages_pb2.EchoStatus(code=2, message=SPECIAL))
        error = await fails(self.unary(request, timeout=LIMIT), Status.UNKNOWN)
        assert error.message == SPECIAL, repr(error.message)

    async def unimplemented_method(self):
        await fails(self.unknown(empty_pb2.Empty(), timeout=LIMIT), Status.UNIMPLEMENTED)

    async def unimplemented_service(self):
        await fails(self.other(empty_pb2.Empty(), timeout=LIMIT), Status.UNIMPLEMENTED)

    async def cancel_after_begin(self):
        async with self.input.open(timeout=LIMIT) as stream:
            await stream.send_request()
            await stream.cancel()

    async def cancel_after_first_response(self):
        async with self.duplex.open(timeout=LIMIT) as stream:
            await stream.send_message(duplex(31415, body=27182))
            check(await stream.recv_message(), 31415)
            await stream.cancel()
        # And the connection is none the worse.
        await self.empty_unary()

    async def timeout_on_sleeping_server(self):
        async def call():
            async with self.duplex.open(timeout=0.01) as stream:
                await stream.send_message(duplex(body=27182))
                await stream.recv_message()

        try:
            await call()
        except asyncio.TimeoutError:
            return
        except GRPCError as error:
            assert error.status is Status.DEADLINE_EXCEEDED, error
            return
        raise AssertionError("the call succeeded")

    async def rpc_soak(self):
        await asyncio.gather(*(self.large_unary() for _ in range(10)))


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server_host", default="localhost")
    parser.add_argument("--server_port", type=int, required=True)
    parser.add_argument("--test_case", required=True)
    parser.add_argument("--use_tls", default="false")
    parser.add_argument("--use_test_ca", default="false")
    parser.add_argument("--ca_file")
    parser.add_argument("--server_host_override")
    flags = parser.parse_args()

    context = None
    if flags.use_tls == "true":
        context = ssl.create_default_context(cafile=flags.ca_file)
        context.set_alpn_protocols(["h2"])
    configuration = Configuration(
        ssl_target_name_override=flags.server_host_override if context else None)
    for _ in range(10 if flags.test_case == "channel_soak" else 1):
        async with Channel(flags.server_host, flags.server_port, ssl=context,
                           config=configuration) as one:
            await getattr(Cases(one), flags.test_case.replace("channel_soak", "large_unary"))()


asyncio.run(main())
sys.exit(0)

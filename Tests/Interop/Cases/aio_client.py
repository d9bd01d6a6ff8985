"""The client of gRPC's interoperability tests on grpcio's asyncio side, with the official flags."""

import argparse
import asyncio
import sys

import grpc

from src.proto.grpc.testing import empty_pb2, messages_pb2, test_pb2_grpc

LIMIT = 20
LARGE = (271828, 314159)
SIZES = list(zip((31415, 9, 2653, 58979), (27182, 8, 1828, 45904)))
METADATA = (("x-grpc-test-echo-initial", "test_initial_metadata_value"),
            ("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab"))
SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"


def zeros(size: int):
    return messages_pb2.Payload(body=bytes(size))


def large(**more):
    return messages_pb2.SimpleRequest(response_size=LARGE[1], payload=zeros(LARGE[0]), **more)


def duplex(*sizes: int, body: int):
    return messages_pb2.StreamingOutputCallRequest(
        response_parameters=[messages_pb2.ResponseParameters(size=size) for size in sizes],
        payload=zeros(body))


def check(response, size: int):
    assert response.payload.body == bytes(size), f"{len(response.payload.body)} bytes, not {size}"


async def fails(awaitable, code: grpc.StatusCode):
    try:
        await awaitable
    except grpc.RpcError as error:
        assert error.code() == code, f"{error.code()} {error.details()}"
        return error
    raise AssertionError("the call succeeded")


async def check_metadata(call):
    initial, trailing = await call.initial_metadata(), await call.trailing_metadata()
    assert METADATA[0] in [tuple(one) for one in initial], initial
    assert METADATA[1] in [tuple(one) for one in trailing], trailing


class Cases:
    def __init__(self, channel):
        self.stub = test_pb2_grpc.TestServiceStub(channel)
        self.other = test_pb2_grpc.UnimplementedServiceStub(channel)

    async def empty_unary(self):
        assert await self.stub.EmptyCall(empty_pb2.Empty(), timeout=LIMIT) == empty_pb2.Empty()

    async def large_unary(self):
        check(await self.stub.UnaryCall(large(), timeout=LIMIT), LARGE[1])

    async def client_compressed_unary(self):
        request = large(expect_compressed=messages_pb2.BoolValue(value=True))
        await fails(self.stub.UnaryCall(request, timeout=LIMIT), grpc.StatusCode.INVALID_ARGUMENT)
        for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            check(await self.stub.UnaryCall(request, timeout=LIMIT, compression=algorithm), LARGE[1])

    async def client_streaming(self):
        requests = [messages_pb2.StreamingInputCallRequest(payload=zeros(size))
                    for size in (27182, 8, 1828, 45904)]
        answer = await self.stub.StreamingInputCall(iter(requests), timeout=LIMIT)
        assert answer.aggregated_payload_size == 74922, answer

    async def server_streaming(self):
        sizes = [size for size, _ in SIZES]
        call = self.stub.StreamingOutputCall(duplex(*sizes, body=0), timeout=LIMIT)
        answers = [one async for one in call]
        assert len(answers) == len(sizes), len(answers)
        for answer, size in zip(answers, sizes):
            check(answer, size)

    async def ping_pong(self):
        call = self.stub.FullDuplexCall(timeout=LIMIT)
        for size, body in SIZES:
            await call.write(duplex(size, body=body))
            check(await call.read(), size)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF

    async def empty_stream(self):
        call = self.stub.FullDuplexCall(timeout=LIMIT)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF

    async def custom_metadata(self):
        call = self.stub.UnaryCall(large(), timeout=LIMIT, metadata=METADATA)
        check(await call, LARGE[1])
        await check_metadata(call)
        call = self.stub.FullDuplexCall(timeout=LIMIT, metadata=METADATA)
        await call.write(duplex(LARGE[1], body=LARGE[0]))
        check(await call.read(), LARGE[1])
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        await check_metadata(call)

    async def status_code_and_message(self):
        wanted = messages_pb2.EchoStatus(code=2, message="test status message")
        request = messages_pb2.SimpleRequest(response_status=wanted)
        error = await fails(self.stub.UnaryCall(request, timeout=LIMIT), grpc.StatusCode.UNKNOWN)
        assert error.details() == wanted.message
        call = self.stub.FullDuplexCall(timeout=LIMIT)
        await call.write(messages_pb2.StreamingOutputCallRequest(response_status=wanted))
        await call.done_writing()
        error = await fails(call.read(), grpc.StatusCode.UNKNOWN)
        assert error.details() == wanted.message

    async def special_status_message(self):
        wanted = messages_pb2.EchoStatus(code=2, message=SPECIAL)
        request = messages_pb2.SimpleRequest(response_status=wanted)
        error = await fails(self.stub.UnaryCall(request, timeout=LIMIT), grpc.StatusCode.UNKNOWN)
        assert error.details() == SPECIAL, repr(error.details())

    async def unimplemented_method(self):
        await fails(self.stub.UnimplementedCall(empty_pb2.Empty(), timeout=LIMIT),
                    grpc.StatusCode.UNIMPLEMENTED)

    async def unimplemented_service(self):
        await fails(self.other.UnimplementedCall(empty_pb2.Empty(), timeout=LIMIT),
                    grpc.StatusCode.UNIMPLEMENTED)

    async def cancel_after_begin(self):
        call = self.stub.StreamingInputCall(timeout=LIMIT)
        call.cancel()
        assert await call.code() == grpc.StatusCode.CANCELLED

    async def cancel_after_first_response(self):
        call = self.stub.FullDuplexCall(timeout=LIMIT)
        await call.write(duplex(31415, body=27182))
        check(await call.read(), 31415)
        call.cancel()
        assert await call.code() == grpc.StatusCode.CANCELLED

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

    options = [("grpc.max_receive_message_length", 8 << 20)]
    if flags.server_host_override:
        options.append(("grpc.ssl_target_name_override", flags.server_host_override))
    address = f"{flags.server_host}:{flags.server_port}"

    def channel():
        if flags.use_tls != "true":
            return grpc.aio.insecure_channel(address, options)
        with open(flags.ca_file, "rb") as roots:
            credentials = grpc.ssl_channel_credentials(roots.read())
        return grpc.aio.secure_channel(address, credentials, options)

    for _ in range(10 if flags.test_case == "channel_soak" else 1):
        async with channel() as one:
            await getattr(Cases(one), flags.test_case.replace("channel_soak", "large_unary"))()


asyncio.run(main())
sys.exit(0)

"""The server of gRPC's interoperability tests on grpclib, with the official flags.

grpclib shares nothing with grpcio: its HTTP/2 is python-hyper's h2. It knows no compression.
"""

import argparse
import asyncio
import signal
import ssl

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from src.proto.grpc.testing import empty_pb2, messages_pb2

INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


async def echo_initial(stream):
    if INITIAL in stream.metadata:
        await stream.send_initial_metadata(metadata={INITIAL: stream.metadata[INITIAL]})


async def echo_trailing(stream):
    if TRAILING in stream.metadata:
        await stream.send_trailing_metadata(metadata={TRAILING: stream.metadata[TRAILING]})


def end_as_asked(request):
    if request.response_status.code:
        raise GRPCError(Status(request.response_status.code), request.response_status.message)


async def answer(stream, request):
    for wanted in request.response_parameters:
        if wanted.interval_us:
            await asyncio.sleep(wanted.interval_us / 1e6)  # what the request asks for
        await stream.send_message(messages_pb2.StreamingOutputCallResponse(
            payload=messages_pb2.Payload(body=bytes(wanted.size))))


class Service:
    async def empty(self, stream):
        await stream.recv_message()
        await stream.send_message(empty_pb2.Empty())

    async def unary(self, stream):
        request = await stream.recv_message()
        await echo_initial(stream)
        end_as_asked(request)
        await stream.send_message(messages_pb2.SimpleResponse(
            payload=messages_pb2.Payload(body=bytes(request.response_size))))
        await echo_trailing(stream)

    async def streaming_input(self, stream):
        size = sum([len(request.payload.body) async for request in stream])
        await stream.send_message(
            messages_pb2.StreamingInputCallResponse(aggregated_payload_size=size))

    async def streaming_output(self, stream):
        await answer(stream, await stream.recv_message())

    async def full_duplex(self, stream):
        await echo_initial(stream)
        async for request in stream:
            end_as_asked(request)
            await answer(stream, request)
        await echo_trailing(stream)

    def __mapping__(self):
        m, service = messages_pb2, "/grpc.testing.TestService/"
        kinds = Cardinality
        return {service + name: Handler(*handler) for name, handler in {
            "EmptyCall": (self.empty, kinds.UNARY_UNARY, empty_pb2.Empty, empty_pb2.Empty),
            "UnaryCall": (self.unary, kinds.UNARY_UNARY, m.SimpleRequest, m.SimpleResponse),
            "StreamingInputCall": (
                self.streaming_input, kinds.STREAM_UNARY, m.StreamingInputCallRequest,
                m.StreamingInputCallResponse),
            "StreamingOutputCall": (
                self.streaming_output, kinds.UNARY_STREAM, m.StreamingOutputCallRequest,
                m.StreamingOutputCallResponse),
            "FullDuplexCall": (
                self.full_duplex, kinds.STREAM_STREAM, m.StreamingOutputCallRequest,
                m.StreamingOutputCallResponse),
        }.items()}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--use_tls", default="false")
    parser.add_argument("--tls_cert_file")
    parser.add_argument("--tls_key_file")
    flags = parser.parse_args()

    context = None
    if flags.use_tls == "true":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(flags.tls_cert_file, flags.tls_key_file)
        context.set_alpn_protocols(["h2"])
    server = Server([Service()])
    await server.start("127.0.0.1", flags.port, ssl=context)
    # grpclib does not tell which port it got.
    port = server._server.sockets[0].getsockname()[1]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await ended.wait()
    server.close()
    await server.wait_closed()


asyncio.run(main())

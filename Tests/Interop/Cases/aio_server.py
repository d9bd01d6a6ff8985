"""The server of gRPC's interoperability tests on grpcio's asyncio side, with the official flags."""

import argparse
import asyncio
import signal

import grpc

from src.proto.grpc.testing import empty_pb2, messages_pb2, test_pb2_grpc

INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"


async def echo_metadata(context):
    received = dict(context.invocation_metadata())
    if INITIAL in received:
        await context.send_initial_metadata(((INITIAL, received[INITIAL]),))
    if TRAILING in received:
        context.set_trailing_metadata(((TRAILING, received[TRAILING]),))


async def end_as_asked(request, context):
    if request.response_status.code:
        code = next(one for one in grpc.StatusCode if one.value[0] == request.response_status.code)
        await context.abort(code, request.response_status.message)


async def answer(request):
    for wanted in request.response_parameters:
        if wanted.interval_us:
            await asyncio.sleep(wanted.interval_us / 1e6)  # what the request asks for
        yield messages_pb2.StreamingOutputCallResponse(
            payload=messages_pb2.Payload(body=bytes(wanted.size)))


class Service(test_pb2_grpc.TestServiceServicer):
    async def EmptyCall(self, request, context):
        await echo_metadata(context)
        return empty_pb2.Empty()

    async def UnaryCall(self, request, context):
        await echo_metadata(context)
        await end_as_asked(request, context)
        return messages_pb2.SimpleResponse(
            payload=messages_pb2.Payload(body=bytes(request.response_size)))

    async def StreamingInputCall(self, requests, context):
        size = 0
        async for request in requests:
            size += len(request.payload.body)
        return messages_pb2.StreamingInputCallResponse(aggregated_payload_size=size)

    async def StreamingOutputCall(self, request, context):
        await echo_metadata(context)
        async for one in answer(request):
            yield one

    async def FullDuplexCall(self, requests, context):
        await echo_metadata(context)
        async for request in requests:
            await end_as_asked(request, context)
            async for one in answer(request):
                yield one


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--use_tls", default="false")
    parser.add_argument("--tls_cert_file")
    parser.add_argument("--tls_key_file")
    flags = parser.parse_args()

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 8 << 20)])
    test_pb2_grpc.add_TestServiceServicer_to_server(Service(), server)
    address = f"127.0.0.1:{flags.port}"
    if flags.use_tls == "true":
        with open(flags.tls_key_file, "rb") as key, open(flags.tls_cert_file, "rb") as certificate:
            credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await ended.wait()
    await server.stop(None)


asyncio.run(main())

"""The server of gRPC's interoperability tests on grpcio, with the official flags.

grpcio tells nobody whether a message came compressed: `expect_compressed` has no effect.
"""

import argparse
import signal
import threading
import time
from concurrent import futures

import grpc

from src.proto.grpc.testing import empty_pb2, messages_pb2, test_pb2_grpc


def echo_metadata(context):
    received = dict(context.invocation_metadata())
    if "x-grpc-test-echo-initial" in received:
        context.send_initial_metadata(
            (("x-grpc-test-echo-initial", received["x-grpc-test-echo-initial"]),))
    if "x-grpc-test-echo-trailing-bin" in received:
        context.set_trailing_metadata(
            (("x-grpc-test-echo-trailing-bin", received["x-grpc-test-echo-trailing-bin"]),))


def end_as_asked(request, context):
    if request.HasField("response_status") and request.response_status.code:
        context.set_code(next(code for code in grpc.StatusCode
                              if code.value[0] == request.response_status.code))
        context.set_details(request.response_status.message)
        return True
    return False


class Service(test_pb2_grpc.TestServiceServicer):
    def EmptyCall(self, request, context):
        echo_metadata(context)
        return empty_pb2.Empty()

    def UnaryCall(self, request, context):
        if request.response_compressed.value:
            context.set_compression(grpc.Compression.Gzip)
        echo_metadata(context)
        if end_as_asked(request, context):
            return messages_pb2.SimpleResponse()
        return messages_pb2.SimpleResponse(
            payload=messages_pb2.Payload(body=bytes(request.response_size)))

    def StreamingInputCall(self, requests, context):
        return messages_pb2.StreamingInputCallResponse(
            aggregated_payload_size=sum(len(request.payload.body) for request in requests))

    def _answer(self, request, context):
        for wanted in request.response_parameters:
            if wanted.interval_us:
                time.sleep(wanted.interval_us / 1e6)  # what the request asks for
            if not wanted.compressed.value:
                context.disable_next_message_compression()
            yield messages_pb2.StreamingOutputCallResponse(
                payload=messages_pb2.Payload(body=bytes(wanted.size)))

    def StreamingOutputCall(self, request, context):
        if any(wanted.compressed.value for wanted in request.response_parameters):
            context.set_compression(grpc.Compression.Gzip)
        echo_metadata(context)
        yield from self._answer(request, context)

    def FullDuplexCall(self, requests, context):
        context.set_compression(grpc.Compression.Gzip)
        echo_metadata(context)
        for request in requests:
            if end_as_asked(request, context):
                return
            yield from self._answer(request, context)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--use_tls", default="false")
    parser.add_argument("--tls_cert_file")
    parser.add_argument("--tls_key_file")
    flags = parser.parse_args()

    server = grpc.server(futures.ThreadPoolExecutor(16),
                         options=[("grpc.max_receive_message_length", 8 << 20)])
    test_pb2_grpc.add_TestServiceServicer_to_server(Service(), server)
    address = f"127.0.0.1:{flags.port}"
    if flags.use_tls == "true":
        with open(flags.tls_key_file, "rb") as key, open(flags.tls_cert_file, "rb") as certificate:
            credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
        port = server.add_secure_port(address, credentials)
    else:
        port = server.add_insecure_port(address)
    server.start()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    print(f"listening on 127.0.0.1:{port}", flush=True)
    ended.wait()
    server.stop(None).wait()


if __name__ == "__main__":
    main()

"""A grpcio server of interop.proto.

usage: echo_server.py [ADDRESS [CERTIFICATE KEY [CLIENTS' ISSUERS]]]  (127.0.0.1:0 by default)

Prints `listening on ADDRESS` once it accepts and serves until it is told to end.
"""

import signal
import sys
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

import stubs
import interop_pb2
import interop_pb2_grpc

SERVICE = interop_pb2.DESCRIPTOR.services_by_name["Echo"].full_name


class Holds:
    """When held calls began and when their handlers learned of the end."""

    def __init__(self):
        self.changed = threading.Condition()
        self.ended = {}

    def begin(self, key: str) -> None:
        with self.changed:
            self.ended[key] = None
            self.changed.notify_all()

    def end(self, key: str) -> None:
        with self.changed:
            self.ended[key] = time.time_ns() // 1000
            self.changed.notify_all()

    def wait(self, key: str, seconds: float) -> interop_pb2.GetHoldResponse:
        with self.changed:
            self.changed.wait_for(lambda: self.ended.get(key) is not None, seconds)
            ended = self.ended.get(key)
            return interop_pb2.GetHoldResponse(
                started=key in self.ended, cancelled=ended is not None,
                cancel_time_micros=ended or 0)


class Echo(interop_pb2_grpc.EchoServicer):
    def __init__(self):
        self.holds = Holds()

    def mirror_metadata(self, context) -> None:
        self.trailing = []
        initial, trailing = [], []
        for key, value in context.invocation_metadata():
            if key.startswith("x-initial-"):
                initial.append((key, value))
            elif key.startswith("x-trailing-"):
                trailing.append((key, value))
        context.send_initial_metadata(initial)
        context.set_trailing_metadata(trailing)
        return trailing

    def fail(self, failure, trailing, context) -> None:
        if failure.details:
            status = interop_pb2.Status(
                code=failure.code, message=failure.message, details=failure.details)
            trailing = [*trailing, ("grpc-status-details-bin", status.SerializeToString())]
            context.set_trailing_metadata(trailing)
        code = next(code for code in grpc.StatusCode if code.value[0] == failure.code)
        context.abort(code, failure.message)

    def answers(self, request, context, first_index=0):
        deadline = remaining(context)
        for index in range(max(0, request.response_count or 1)):
            if request.delay_milliseconds:
                # Wakes when the call ends, so that a cancelled one holds no thread.
                ended = threading.Event()
                if not context.add_callback(ended.set):
                    return
                if ended.wait(request.delay_milliseconds / 1000):
                    return
            payload = b"\x5a" * request.response_bytes if request.response_bytes else request.payload
            yield interop_pb2.EchoResponse(
                payload=payload, index=first_index + index, deadline_milliseconds=deadline)

    def Unary(self, request, context):
        trailing = self.mirror_metadata(context)
        request.response_count = 1
        answer = None
        for answer in self.answers(request, context):
            pass
        if request.HasField("failure"):
            self.fail(request.failure, trailing, context)
        return answer or interop_pb2.EchoResponse()

    def ServerStream(self, request, context):
        trailing = self.mirror_metadata(context)
        yield from self.answers(request, context)
        if request.HasField("failure"):
            self.fail(request.failure, trailing, context)

    def ClientStream(self, requests, context):
        trailing = self.mirror_metadata(context)
        answer = interop_pb2.EchoResponse(deadline_milliseconds=remaining(context))
        for request in requests:
            answer.payload = request.payload
            answer.request_count += 1
            answer.request_bytes += len(request.payload)
            if request.HasField("failure"):
                self.fail(request.failure, trailing, context)
        return answer

    def Bidirectional(self, requests, context):
        trailing = self.mirror_metadata(context)
        index = 0
        for request in requests:
            for answer in self.answers(request, context, index):
                index += 1
                yield answer
            if request.HasField("failure"):
                self.fail(request.failure, trailing, context)

    def Hold(self, request, context):
        ended = threading.Event()

        def learn():
            self.holds.end(request.key)
            ended.set()

        self.holds.begin(request.key)
        if not context.add_callback(learn):
            learn()
        yield interop_pb2.HoldResponse(key=request.key)
        ended.wait()

    def GetHold(self, request, context):
        return self.holds.wait(request.key, request.wait_milliseconds / 1000)


def remaining(context) -> int:
    seconds = context.time_remaining()
    # grpcio says "about for ever" where there is no deadline.
    return -1 if seconds is None or seconds > 10**8 else int(seconds * 1000)


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:0"
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=128))
    interop_pb2_grpc.add_EchoServicer_to_server(Echo(), server)
    checks = health.HealthServicer()
    checks.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    # This package knows v1alpha only: what most servers out there still speak.
    reflection.enable_server_reflection([SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    if files := [Path(name).read_bytes() for name in sys.argv[2:]]:
        port = server.add_secure_port(address, grpc.ssl_server_credentials(
            [(files[1], files[0])], *files[2:], require_client_auth=len(files) > 2))
    else:
        port = server.add_insecure_port(address)
    server.start()
    print(f"listening on {address.rsplit(':', 1)[0]}:{port}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    server.stop(1).wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()

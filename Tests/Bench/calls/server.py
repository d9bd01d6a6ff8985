"""calls.proto on grpcio.

usage: server.py PORT; prints `listening` and serves until SIGTERM.
"""

import sys
from concurrent import futures

import grpc

import calls_pb2
import calls_pb2_grpc


class Load(calls_pb2_grpc.LoadServicer):
    def Echo(self, item, context):
        return calls_pb2.Item(id=item.id, at=item.at, body=item.body)

    def Serve(self, wanted, context):
        body = bytes(wanted.size)
        for number in range(wanted.count):
            yield calls_pb2.Item(id="0123456789abcdef", at=number | 1 << 20, body=body)

    def Collect(self, items, context):
        last, count = calls_pb2.Item(), 0
        for last in items:
            count += 1
        return calls_pb2.Item(id=last.id, at=count, body=last.body)

    def Chat(self, items, context):
        for item in items:
            yield calls_pb2.Item(id=item.id, at=item.at, body=item.body)


server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.max_concurrent_streams", 100_000)])
calls_pb2_grpc.add_LoadServicer_to_server(Load(), server)
if server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}") == 0:
    sys.exit("the port is taken")
server.start()
print("listening", flush=True)
server.wait_for_termination()

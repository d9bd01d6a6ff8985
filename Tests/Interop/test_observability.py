"""Metrics, traces and logs of `vencejo serve`, judged by the programs that read them."""

import contextlib
import json
import re
import shutil
import socket
import ssl
import threading
import time
import unittest
import urllib.error
import urllib.request
from concurrent import futures

import grpc

import certificates
import harness
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from harness import LIMIT
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families
from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc

CHECK = "grpc.health.v1.Health/Check"


def until(found, limit: float = LIMIT):
    """What `found` answers once it is true."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.01)  # Between two looks; the deadline ends it.
    raise AssertionError("it did not come")


class Case(unittest.TestCase):
    def serve(self, *arguments: str) -> harness.Server:
        server = harness.Server(*arguments)
        self.addCleanup(server.close)
        return server

    def lines(self, server) -> list:
        """Of a log in JSON."""
        return [json.loads(line) for line in server.peer.errors().splitlines()]

    def health(self, server) -> health_pb2_grpc.HealthStub:
        channel = harness.channel(server.address)
        self.addCleanup(channel.close)
        return health_pb2_grpc.HealthStub(channel)

    def check(self, server, service: str = "", metadata=()):
        return self.health(server).Check(
            health_pb2.HealthCheckRequest(service=service), timeout=LIMIT, metadata=metadata)


class Prometheus(Case):
    def page(self, server) -> str:
        said = until(lambda: re.search(r"metrics on (http://\S+)", server.peer.errors()))
        with urllib.request.urlopen(said[1], timeout=LIMIT) as answer:
            self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
            return answer.read().decode()

    def test_metrics(self):
        server = self.serve("--metrics", "127.0.0.1:0")
        self.assertEqual(list(text_string_to_metric_families(self.page(server))), [])
        for _ in range(3):
            self.check(server)
        with self.assertRaises(grpc.RpcError):
            self.check(server, "none")
        for number in range(5):
            with harness.channel(server.address) as channel:
                with self.assertRaises(grpc.RpcError):
                    channel.unary_unary(f"/none.Such/Method{number}")(b"", timeout=LIMIT)
        families = {family.name: family for family in text_string_to_metric_families(self.page(server))}
        self.assertEqual(set(families), {
            "grpc_server_call_started", "grpc_server_call_duration_seconds",
            "grpc_server_call_sent_total_compressed_message_size_bytes",
            "grpc_server_call_rcvd_total_compressed_message_size_bytes"})
        started = families["grpc_server_call_started"]
        self.assertEqual(started.type, "counter")
        self.assertEqual(
            {sample.labels["grpc_method"]: sample.value for sample in started.samples},
            {CHECK: 4, "other": 5})
        durations = families["grpc_server_call_duration_seconds"]
        self.assertEqual(durations.type, "histogram")
        counts = {
            (sample.labels["grpc_method"], sample.labels["grpc_status"]): sample.value
            for sample in durations.samples if sample.name.endswith("_count")}
        self.assertEqual(
            counts, {(CHECK, "OK"): 3, (CHECK, "NOT_FOUND"): 1, ("other", "UNIMPLEMENTED"): 5})
        buckets = [sample for sample in durations.samples if sample.name.endswith("_bucket")
                   and sample.labels["grpc_status"] == "NOT_FOUND"]
        bounds = [float(sample.labels["le"]) for sample in buckets]
        # gRFC A66: 41 bounds from 0 to 100 s, and the rest.
        self.assertEqual((len(bounds), bounds[0], bounds[1], bounds[-2]), (42, 0, 0.00001, 100))
        self.assertEqual(bounds, sorted(bounds))
        values = [sample.value for sample in buckets]
        self.assertEqual((values, values[-1]), (sorted(values), 1))

    def test_other_pages_are_not_there(self):
        server = self.serve("--metrics", "127.0.0.1:0")
        said = until(lambda: re.search(r"metrics on (http://[^/\s]+)", server.peer.errors()))
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(said[1] + "/etc/passwd", timeout=LIMIT)
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()


    def test_bench_and_the_server_count_the_same(self):
        server = self.serve("--metrics", "127.0.0.1:0")
        ended = harness.run("bench", server.address, CHECK, "-n", "300", "-c", "3", "-O", "json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        report = json.loads(ended.stdout)
        samples = {
            sample.name.rsplit("_", 1)[1]: sample.value
            for family in text_string_to_metric_families(self.page(server))
            if family.name == "grpc_server_call_duration_seconds" for sample in family.samples
            if sample.labels["grpc_method"] == CHECK and not sample.name.endswith("_bucket")}
        self.assertEqual((samples["count"], report["calls"]), (300, 300))
        # A call takes longer for its caller.
        self.assertLess(samples["sum"] / 300 * 1e6, report["latencyMicroseconds"]["mean"])


class Collector(
        trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer):
    """An OTLP collector that keeps what it is sent."""

    def __init__(self, credentials=None):
        self.spans, self.resources, self.metrics, self.keys = [], [], {}, set()
        self.lock = threading.Lock()
        self.pool = futures.ThreadPoolExecutor(4)
        self.server = grpc.server(self.pool)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self.server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(
            _Metrics(self), self.server)
        port = (self.server.add_secure_port("127.0.0.1:0", credentials) if credentials
                else self.server.add_insecure_port("127.0.0.1:0"))
        self.address = f"127.0.0.1:{port}"
        self.server.start()

    def Export(self, request, context):
        with self.lock:
            for resource in request.resource_spans:
                self.resources.append(resource.resource)
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def close(self):
        self.server.stop(None).wait()
        self.pool.shutdown()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    """Both services call their method Export."""

    def __init__(self, collector: Collector):
        self.collector = collector

    def Export(self, request, context):
        with self.collector.lock:
            self.collector.keys |= {
                value for key, value in context.invocation_metadata() if key == "x-key"}
            for resource in request.resource_metrics:
                self.collector.resources.append(resource.resource)
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        self.collector.metrics[metric.name] = metric
        return metrics_service_pb2.ExportMetricsServiceResponse()


def attributes(holder) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in holder.attributes}


class OTLP(Case):
    def test_metrics_and_traces_reach_a_collector(self):
        collector = Collector()
        self.addCleanup(collector.close)
        server = self.serve("--otlp", collector.address)
        trace = "0af7651916cd43dd8448eb211c80319c"
        self.check(server, metadata=(
            ("traceparent", f"00-{trace}-b7ad6b7169203331-01"), ("tracestate", "rojo=1,congo=2")))
        with self.assertRaises(grpc.RpcError):
            self.check(server, "none", metadata=(("traceparent", f"00-{trace}-b7ad6b7169203331-00"),))
        began = time.time_ns()
        self.check(server)
        # The end sends what waits.
        self.assertEqual(server.stop(), 0)

        self.assertEqual(len(collector.spans), 2, "the caller of the second did not sample")
        given, own = sorted(collector.spans, key=lambda span: span.start_time_unix_nano)
        self.assertEqual(given.trace_id.hex(), trace)
        self.assertEqual(given.parent_span_id.hex(), "b7ad6b7169203331")
        self.assertEqual(given.trace_state, "rojo=1,congo=2")
        self.assertEqual(given.name, CHECK)
        self.assertEqual(given.kind, given.SPAN_KIND_SERVER)
        self.assertEqual(len(given.span_id), 8)
        self.assertLessEqual(given.start_time_unix_nano, given.end_time_unix_nano)
        described = attributes(given)
        self.assertEqual(
            (described["rpc.system"], described["rpc.service"], described["rpc.method"],
             described["rpc.grpc.status_code"]), ("grpc", "grpc.health.v1.Health", "Check", 0))
        self.assertNotEqual(own.trace_id.hex(), trace)
        self.assertEqual(own.parent_span_id, b"")
        self.assertGreaterEqual(own.start_time_unix_nano, began - 1_000_000_000)

        for resource in collector.resources:
            self.assertEqual(attributes(resource)["service.name"], "vencejo")
        started = collector.metrics["grpc.server.call.started"]
        self.assertEqual(started.unit, "{call}")
        self.assertTrue(started.sum.is_monotonic)
        self.assertEqual(started.sum.aggregation_temporality, 2)
        [point] = started.sum.data_points
        self.assertEqual((attributes(point), point.as_int), ({"grpc.method": CHECK}, 3))
        duration = collector.metrics["grpc.server.call.duration"]
        self.assertEqual(duration.unit, "s")
        for point in duration.histogram.data_points:
            self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
            self.assertEqual(sum(point.bucket_counts), point.count)
            self.assertGreater(point.time_unix_nano, point.start_time_unix_nano)
        self.assertEqual(
            {attributes(point)["grpc.status"]: point.count
             for point in duration.histogram.data_points}, {"OK": 2, "NOT_FOUND": 1})

    def test_over_tls_with_a_key(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make certificates with")
        made = certificates.made()
        collector = Collector(grpc.ssl_server_credentials(
            [(made.read(made.key("server")), made.read(made.pem("server")))]))
        self.addCleanup(collector.close)
        server = self.serve(
            "--otlp", "https://" + collector.address.replace("127.0.0.1", "localhost"), "--otlp-ca",
            made.pem("root"), "--otlp-header", "X-Key: secret", "--trace-sampling", "0")
        self.check(server)
        self.assertEqual(server.stop(), 0)
        self.assertIn("grpc.server.call.started", collector.metrics)
        self.assertEqual(collector.spans, [])
        self.assertEqual(collector.keys, {"secret"})

    def test_a_collector_that_is_away_does_not_matter(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            server = self.serve("--otlp", f"127.0.0.1:{nobody.getsockname()[1]}")
            self.check(server)
            self.assertEqual(server.stop(), 0)
        self.assertIn("by OTLP failed", server.peer.errors())


class Logs(Case):
    def test_json_lines_carry_the_id_of_the_error(self):
        server = self.serve("--log-format", "json", "--log-calls")
        with self.assertRaises(grpc.RpcError) as caught:
            self.check(server, "none")
        [detail] = rpc_status.from_call(caught.exception).details
        info = error_details_pb2.RequestInfo()
        self.assertTrue(detail.Unpack(info))
        initial = dict(caught.exception.initial_metadata())
        [line] = until(lambda: [line for line in self.lines(server) if line.get("status") == "NOT_FOUND"])
        self.assertEqual(line["request_id"], info.request_id)
        self.assertEqual(line["method"], CHECK)
        self.assertRegex(line["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(line["level"], "info")
        self.assertGreater(line["ms"], 0)
        self.assertIn("127.0.0.1:", line["peer"])

    def test_an_error_of_the_service_keeps_its_reason(self):
        server = self.serve("--log-format", "json", "--log-calls")
        channel = harness.channel(server.address)
        self.addCleanup(channel.close)
        with self.assertRaises(grpc.RpcError) as caught:
            auth_pb2_grpc.AuthServiceStub(channel).GetUser(
                auth_pb2.GetUserRequest(name="users/me"), timeout=LIMIT,
                metadata=(("x-request-id", "from-the-caller"),))
        kinds = [detail.type_url.rsplit(".")[-1]
                 for detail in rpc_status.from_call(caught.exception).details]
        self.assertEqual(sorted(kinds), ["ErrorInfo", "RequestInfo"])
        until(lambda: any(line.get("request_id") == "from-the-caller" for line in self.lines(server)))

    def test_secrets_stay_secret(self):
        server = self.serve("--log-format", "json", "--log-metadata", "--redact", "X-Mine")
        self.check(server, metadata=(
            ("authorization", "Bearer hush"), ("cookie", "hush"), ("x-mine", "hush"),
            ("key-bin", b"hush"), ("x-open", 'said "so"\\')))
        [line] = until(lambda: [line for line in self.lines(server) if line["msg"] == "served"])
        self.assertEqual(line["metadata.x-open"], 'said "so"\\')
        for key in ("authorization", "cookie", "x-mine", "key-bin"):
            self.assertEqual(line[f"metadata.{key}"], "[redacted]")
        self.assertNotIn("hush", server.peer.errors())

    def test_logfmt(self):
        server = self.serve("--log-format", "logfmt", "--log-calls")
        self.check(server)
        until(lambda: re.search(
            rf'^time=\S+ level=info msg=served method={CHECK} status=OK ms=\S+ peer=\S+ '
            r'request_id=[0-9a-f]{32}$', server.peer.errors(), re.M))

    def test_quiet_says_nothing(self):
        server = self.serve("--quiet", "--log-calls")
        self.check(server)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(server.peer.errors(), "")


class FailedHandshakes(Case):
    def test_each_peer_and_reason_is_logged_once(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make certificates with")
        made = certificates.made()
        server = self.serve(
            "--tls-cert", made.pem("server"), "--tls-key", made.key("server"),
            "--log-format", "json")
        for _ in range(5):
            with server.connect() as plain:
                plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                plain.recv(1024)
        failed = lambda: [line for line in self.lines(server) if line["msg"] == "connection failed"]
        until(failed)
        # One that speaks TLS and no HTTP/2 has another reason.
        context = ssl._create_unverified_context()
        with contextlib.suppress(OSError), server.connect() as other:
            with context.wrap_socket(other) as tls:
                tls.recv(1024)
        until(lambda: len(failed()) == 2)
        self.assertEqual(server.stop(), 0)
        self.assertEqual([line["peer"] for line in failed()], ["127.0.0.1"] * 2)
        self.assertIn("does not speak TLS", failed()[0]["error"])
        self.assertIn("ALPN", failed()[1]["error"])


if __name__ == "__main__":
    unittest.main()

"""channelz v1 of `vencejo serve`, with grpcio's messages and stubs."""

import shutil
import socket
import ssl
import unittest

import grpc

import certificates
import harness
import test_observability
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2
from harness import LIMIT
from test_observability import Case, until

State = channelz_pb2.ChannelConnectivityState


class Channelz(Case):
    def stub(self, server, credentials=None) -> channelz_pb2_grpc.ChannelzStub:
        address = server.address.replace("127.0.0.1", "localhost") if credentials else server.address
        channel = harness.channel(address, credentials=credentials)
        self.addCleanup(channel.close)
        return channelz_pb2_grpc.ChannelzStub(channel)

    def only_server(self, stub):
        answer = stub.GetServers(channelz_pb2.GetServersRequest(), timeout=LIMIT)
        self.assertTrue(answer.end)
        [found] = answer.server
        return found

    def test_without_it_nothing_is_shown(self):
        server = self.serve()
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub(server).GetServers(channelz_pb2.GetServersRequest(), timeout=LIMIT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_server_and_its_sockets(self):
        server = self.serve("--channelz")
        stub = self.stub(server)
        before = self.only_server(stub).data
        health = self.health(server)
        for _ in range(3):
            health.Check(health_pb2.HealthCheckRequest(), timeout=LIMIT)
        with self.assertRaises(grpc.RpcError):
            health.Check(health_pb2.HealthCheckRequest(service="none"), timeout=LIMIT)
        found = self.only_server(stub)
        self.assertGreater(found.ref.server_id, 0)
        # Five calls, and the one that asked before; this one has begun.
        self.assertEqual(found.data.calls_started, before.calls_started + 5)
        self.assertEqual(found.data.calls_succeeded, before.calls_succeeded + 4)
        self.assertEqual(found.data.calls_failed, 1)
        self.assertGreaterEqual(
            found.data.last_call_started_timestamp.ToNanoseconds(),
            found.data.trace.creation_timestamp.ToNanoseconds())
        [listening] = found.listen_socket
        local = stub.GetSocket(channelz_pb2.GetSocketRequest(
            socket_id=listening.socket_id), timeout=LIMIT).socket.local
        self.assertEqual(local.tcpip_address.ip_address, socket.inet_aton("127.0.0.1"))
        self.assertEqual(local.tcpip_address.port, server.port)

        sockets = stub.GetServerSockets(channelz_pb2.GetServerSocketsRequest(
            server_id=found.ref.server_id), timeout=LIMIT)
        self.assertTrue(sockets.end)
        self.assertEqual(len(sockets.socket_ref), 2)
        ids = [one.socket_id for one in sockets.socket_ref]
        self.assertEqual(ids, sorted(ids))
        mine, others = (stub.GetSocket(channelz_pb2.GetSocketRequest(
            socket_id=number), timeout=LIMIT).socket for number in ids)
        data = others.data
        self.assertEqual((data.streams_started, data.streams_succeeded, data.streams_failed), (4, 4, 0))
        self.assertEqual((data.messages_received, data.messages_sent), (4, 3))
        self.assertEqual(others.local.tcpip_address.port, server.port)
        self.assertEqual(others.ref.name, f"127.0.0.1:{others.remote.tcpip_address.port}")
        self.assertGreater(data.remote_flow_control_window.value, 65_535)
        self.assertGreaterEqual(data.local_flow_control_window.value, 65_535)
        for stamp in (data.last_remote_stream_created_timestamp, data.last_message_sent_timestamp,
                      data.last_message_received_timestamp):
            self.assertGreater(stamp.ToNanoseconds(), 0)
        self.assertFalse(data.HasField("last_local_stream_created_timestamp"))
        self.assertFalse(others.HasField("security"))
        self.assertGreater(mine.data.streams_started, 1)

    def test_sockets_go_with_their_connections(self):
        server = self.serve("--channelz")
        stub = self.stub(server)
        number = self.only_server(stub).ref.server_id
        count = lambda: len(stub.GetServerSockets(channelz_pb2.GetServerSocketsRequest(
            server_id=number), timeout=LIMIT).socket_ref)
        with server.connect():
            until(lambda: count() == 2)
        until(lambda: count() == 1)

    def test_pages(self):
        server = self.serve("--channelz")
        stub = self.stub(server)
        number = self.only_server(stub).ref.server_id
        opened = [server.connect() for _ in range(4)]
        for one in opened:
            self.addCleanup(one.close)
        ask = lambda start, size: stub.GetServerSockets(channelz_pb2.GetServerSocketsRequest(
            server_id=number, start_socket_id=start, max_results=size), timeout=LIMIT)
        until(lambda: len(ask(0, 0).socket_ref) == 5)
        ids, start = [], 0
        while True:
            page = ask(start, 2)
            ids += [one.socket_id for one in page.socket_ref]
            if page.end:
                break
            self.assertEqual(len(page.socket_ref), 2)
            start = ids[-1] + 1
        self.assertEqual(len(set(ids)), 5)
        self.assertTrue(stub.GetServers(channelz_pb2.GetServersRequest(
            start_server_id=number + 1), timeout=LIMIT).end)
        with self.assertRaises(grpc.RpcError) as caught:
            ask(0, -1)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_unknown_ids(self):
        stub = self.stub(self.serve("--channelz"))
        server = self.only_server(stub).ref.server_id
        for call in (
            lambda: stub.GetChannel(channelz_pb2.GetChannelRequest(channel_id=server), timeout=LIMIT),
            lambda: stub.GetSubchannel(
                channelz_pb2.GetSubchannelRequest(subchannel_id=10**9), timeout=LIMIT),
            lambda: stub.GetSocket(channelz_pb2.GetSocketRequest(socket_id=-1), timeout=LIMIT),
            lambda: stub.GetServerSockets(
                channelz_pb2.GetServerSocketsRequest(server_id=10**9), timeout=LIMIT),
        ):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_channels(self):
        """The one by which metrics are exported."""
        collector = test_observability.Collector()
        self.addCleanup(collector.close)
        server = self.serve("--channelz", "--otlp", collector.address, "--otlp-interval", "0.3")
        stub = self.stub(server)
        answer = stub.GetTopChannels(channelz_pb2.GetTopChannelsRequest(), timeout=LIMIT)
        self.assertTrue(answer.end)
        [channel] = answer.channel
        self.assertEqual(channel.data.target, collector.address)
        look = lambda: stub.GetChannel(channelz_pb2.GetChannelRequest(
            channel_id=channel.ref.channel_id), timeout=LIMIT).channel
        used = until(lambda: (now := look()).data.calls_succeeded and now)
        self.assertEqual(used.data.state.state, State.READY)
        self.assertGreaterEqual(used.data.trace.num_events_logged, 3)
        [reference] = used.subchannel_ref

        def beside():
            """The subchannel between two looks at its channel that say the same."""
            before = look().data.calls_succeeded
            part = stub.GetSubchannel(channelz_pb2.GetSubchannelRequest(
                subchannel_id=reference.subchannel_id), timeout=LIMIT).subchannel
            return before == look().data.calls_succeeded and (part, before)

        # Exports go on meanwhile.
        subchannel, succeeded = until(beside)
        self.assertEqual(subchannel.data.calls_succeeded, succeeded)
        [reference] = subchannel.socket_ref
        found = stub.GetSocket(channelz_pb2.GetSocketRequest(
            socket_id=reference.socket_id), timeout=LIMIT).socket
        self.assertEqual(found.remote.tcpip_address.port, int(collector.address.split(":")[1]))
        self.assertGreaterEqual(found.data.streams_succeeded, 1)
        self.assertTrue(found.data.HasField("last_local_stream_created_timestamp"))

    def test_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make certificates with")
        made = certificates.made()
        server = self.serve(
            "--channelz", "--tls-cert", made.pem("server"), "--tls-key", made.key("server"))
        stub = self.stub(server, grpc.ssl_channel_credentials(made.read(made.pem("root"))))
        number = self.only_server(stub).ref.server_id
        [reference] = stub.GetServerSockets(channelz_pb2.GetServerSocketsRequest(
            server_id=number), timeout=LIMIT).socket_ref
        tls = stub.GetSocket(channelz_pb2.GetSocketRequest(
            socket_id=reference.socket_id), timeout=LIMIT).socket.security.tls
        self.assertRegex(tls.standard_name, "^TLS_")
        self.assertEqual(
            tls.local_certificate, ssl.PEM_cert_to_DER_cert(made.read(made.pem("server")).decode()))
        self.assertEqual(tls.remote_certificate, b"")


if __name__ == "__main__":
    unittest.main()

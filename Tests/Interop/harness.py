"""Starts the program under test and gives clients of it.

Nothing here waits for a fixed time: a server is up when it has said so, a
process has ended when the kernel says so, and every wait has a limit.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import grpc

import stubs
from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc
from vencejo.chat.v1 import chat_pb2, chat_pb2_grpc
from vencejo.record.v1 import record_pb2, record_pb2_grpc

# Generous: a debug build on a busy machine. A test that reaches it has failed.
LIMIT = 20.0
IN_CI = os.environ.get("VENCEJO_CI") == "1"
PASSWORD = "correct horse battery staple"


def program() -> str:
    path = os.environ.get("VENCEJO_PROGRAM")
    if path:
        return path
    for build in ("release", "debug"):
        candidate = stubs.TOP / ".build" / build / "vencejo"
        if candidate.exists():
            return str(candidate)
    raise RuntimeError("no program to test: build it, or name one in VENCEJO_PROGRAM")


def run(*arguments: str, stdin: str = "", timeout: float = LIMIT, env=None):
    """Runs the program to its end."""
    return subprocess.run(
        [program(), *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
        env={**os.environ, **(env or {})},
    )


class Peer:
    """A server process that prints `listening on ADDRESS` once it accepts."""

    def __init__(self, command: list[str], env=None):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            env={**os.environ, **(env or {})},
        )
        self.address = self._announced()

    def _announced(self) -> str:
        deadline = time.monotonic() + LIMIT
        said = b""
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.5)
            if not ready:
                continue
            chunk = os.read(self.process.stdout.fileno(), 4096)
            if not chunk:
                break
            said += chunk
            for line in said.decode().split("\n")[:-1]:
                if line.startswith("listening on "):
                    return line.removeprefix("listening on ").strip()
        self.kill()
        raise RuntimeError(f"{self.process.args} did not start; it said {said!r} and {self.errors()!r}")

    def errors(self) -> str:
        # Read at a position of our own: the process writes through the same open file, and a seek
        # would move where its next line goes.
        log = self.log.fileno()
        return os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace")

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        if self.alive():
            self.process.kill()
        self.process.wait(LIMIT)
        self.process.stdout.close()

    def stop(self) -> int:
        """SIGTERM: drains. Returns the exit code."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"{self.process.args} did not end on SIGTERM; log: {self.errors()!r}")
        self.process.stdout.close()
        return code


class Server:
    """`vencejo serve` on a data folder of its own, which outlives restarts."""

    def __init__(self, *arguments: str):
        self.arguments = arguments
        self.data = tempfile.mkdtemp(prefix="vencejo-data-")
        self.listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        self.peer = Peer([
            program(), "serve", "--listen", self.listen, "--data", self.data, *self.arguments])
        self.address = self.peer.address
        # A restart comes back on the same port, as clients expect.
        self.listen = self.address

    def kill(self) -> None:
        self.peer.kill()

    def stop(self) -> int:
        return self.peer.stop()

    def close(self) -> None:
        try:
            if self.peer.alive():
                self.peer.stop()
        finally:
            shutil.rmtree(self.data, ignore_errors=True)

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def connect(self) -> socket.socket:
        """A bare TCP connection."""
        host, port = self.address.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=LIMIT)


def channel(address: str, *options, credentials=None) -> grpc.Channel:
    options = [
        # One connection each, quick to come back: tests restart servers.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 50),
        ("grpc.min_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.max_receive_message_length", 8 << 20),
        ("grpc.max_send_message_length", 8 << 20),
        ("grpc.enable_retries", 0),
        *options,
    ]
    if credentials is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=options)


def new_id() -> str:
    """A UUID of version 7: time first, so that ids sort as they were made."""
    milliseconds = time.time_ns() // 1_000_000
    number = milliseconds << 80 | 7 << 76 | int.from_bytes(os.urandom(2)) % 4096 << 64
    number |= 2 << 62 | int.from_bytes(os.urandom(8)) >> 2
    return str(uuid.UUID(int=number))


class Person:
    """A signed-in user: a channel, the three stubs, and the token on every call."""

    def __init__(self, address: str, handle: str, display_name: str = "", sign_up: bool = True):
        self.handle = handle
        self.channel = channel(address)
        self.auth = auth_pb2_grpc.AuthServiceStub(self.channel)
        self.chat = chat_pb2_grpc.ChatServiceStub(self.channel)
        self.record = record_pb2_grpc.RecordServiceStub(self.channel)
        if sign_up:
            answer = self.auth.SignUp(auth_pb2.SignUpRequest(
                request_id=new_id(), handle=handle, password=PASSWORD,
                display_name=display_name or handle.capitalize(), device_id=new_id(),
            ), timeout=LIMIT, wait_for_ready=True)
        else:
            answer = self.auth.SignIn(auth_pb2.SignInRequest(
                password=auth_pb2.PasswordCredential(identifier=handle, password=PASSWORD),
                device_id=new_id(),
            ), timeout=LIMIT, wait_for_ready=True)
        self.user = answer.user
        self.tokens = answer.tokens

    @classmethod
    def sign_in(cls, address: str, handle: str) -> "Person":
        return cls(address, handle, sign_up=False)

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def metadata(self) -> tuple:
        return (("authorization", f"Bearer {self.tokens.access_token}"),)

    def call(self, method, request, timeout: float = LIMIT, wait_for_ready: bool = False):
        return method(request, timeout=timeout, metadata=self.metadata, wait_for_ready=wait_for_ready)

    def stream(self, method, request, timeout: float = LIMIT):
        return method(request, timeout=timeout, metadata=self.metadata, wait_for_ready=True)

    def close(self) -> None:
        self.channel.close()

    # The chat verbs that most tests use.

    def direct_chat(self, other: "Person"):
        return self.call(self.chat.CreateChat, chat_pb2.CreateChatRequest(
            request_id=new_id(), chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_DIRECT),
            members=[other.name])).chat

    def group_chat(self, title: str, *others: "Person"):
        return self.call(self.chat.CreateChat, chat_pb2.CreateChatRequest(
            request_id=new_id(), chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_GROUP, title=title),
            members=[other.name for other in others])).chat

    def send(self, chat: str, text: str, message_id: str = "", **options):
        return self.call(self.chat.SendMessage, message(chat, text, message_id), **options)

    def messages(self, chat: str, page_size: int = 200) -> list:
        """Every message of the chat, oldest first, page by page."""
        found, token = [], ""
        while True:
            page = self.call(self.chat.ListMessages, chat_pb2.ListMessagesRequest(
                parent=chat, page_size=page_size, page_token=token))
            found = list(page.messages) + found
            token = page.older_page_token
            if not token:
                return found

    def chats(self) -> dict:
        page = self.call(self.chat.ListChats, chat_pb2.ListChatsRequest(page_size=100))
        return {chat.name: chat for chat in page.chats}


def message(chat: str, text: str, message_id: str = "") -> chat_pb2.SendMessageRequest:
    return chat_pb2.SendMessageRequest(
        parent=chat, message_id=message_id or new_id(),
        content=chat_pb2.MessageContent(text=chat_pb2.TextContent(text=text)))


def error_info(error: grpc.RpcError):
    """(reason, domain, metadata) of a failed call's ErrorInfo."""
    from google.rpc import error_details_pb2
    from grpc_status import rpc_status

    status = rpc_status.from_call(error)
    assert status is not None, f"no grpc-status-details-bin in {error}"
    infos = []
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            infos.append(info)
    assert len(infos) == 1, f"{len(infos)} ErrorInfo in {status}"
    return infos[0].reason, infos[0].domain, dict(infos[0].metadata)

"""A client of Vencejo's messenger: a session, an outbox, a cache that misses nothing, files.

Whatever must outlive the process is in one SQLite file. Copy this into your program and throw
away what you do not need; `conversation.py` shows it at work.
"""

import hashlib
import os
import random
import sqlite3
import threading
import time
import uuid

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc
from vencejo.chat.v1 import chat_pb2, chat_pb2_grpc

CHUNK = 64 * 1024
# Without a word for two and a half heartbeats (20 s each), a stream is dead.
SILENCE = 50.0


def new_id() -> str:
    """A UUID of version 7: time first, so that ids sort as they were made."""
    number = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))


def reason(error: grpc.RpcError) -> str:
    """Why a call failed, in a word that programs may rely on; "" when nobody said."""
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details if status else []:
        if detail.Unpack(info):
            return info.reason
    return ""


class Backoff:
    """A random time up to half a second, doubled with each failure, up to 30 s."""

    def __init__(self):
        self.most = 0.5

    def wait(self, over: threading.Event) -> None:
        over.wait(random.uniform(0, self.most))
        self.most = min(self.most * 2, 30)

    def reset(self) -> None:
        self.most = 0.5


class Messenger:
    def __init__(self, address: str, file: str, handle: str, password: str):
        self.handle, self.password = handle, password
        channel = grpc.insecure_channel(address, [("grpc.max_reconnect_backoff_ms", 2000)])
        self.auth = auth_pb2_grpc.AuthServiceStub(channel)
        self.chat = chat_pb2_grpc.ChatServiceStub(channel)
        # One connection, one lock: whoever waits for a change waits on it.
        self.changed = threading.Condition()
        self.cache = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self.cache.executescript("""
            PRAGMA journal_mode = WAL;
            CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT);
            CREATE TABLE IF NOT EXISTS message(
              chat TEXT, sequence INTEGER, name TEXT, sender TEXT, text TEXT, reaction TEXT,
              attachment TEXT, reply_to TEXT, PRIMARY KEY(chat, sequence));
            CREATE TABLE IF NOT EXISTS marker(
              chat TEXT, user TEXT, read INTEGER, PRIMARY KEY(chat, user));
            CREATE TABLE IF NOT EXISTS outbox(id TEXT PRIMARY KEY, request BLOB);
        """)
        self.access_token = ""
        # Not kept: what is not in the log either.
        self.typing = set()
        self.caught_up = False
        self.resets = 0
        self.over = threading.Event()
        self.stream = None

    # State that outlives the process.

    def kept(self, name: str) -> str:
        found = self.cache.execute("SELECT value FROM state WHERE name = ?", [name]).fetchone()
        return found[0] if found else ""

    def keep(self, name: str, value: str) -> None:
        self.cache.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", [name, value])

    # The session.

    def sign_in(self) -> str:
        """By the refresh token of last time, or by password; makes the account when there is none."""
        try:
            if not self.refresh():
                self._sign_in_by_password()
        except grpc.RpcError as error:
            if reason(error) != "BAD_CREDENTIAL":
                raise
            answer = self.auth.SignUp(auth_pb2.SignUpRequest(
                request_id=new_id(), handle=self.handle, password=self.password,
                display_name=self.handle.capitalize(), device_label="example in Python"))
            self._signed_in(answer)
        return self.kept("user")

    def _sign_in_by_password(self) -> None:
        self._signed_in(self.auth.SignIn(auth_pb2.SignInRequest(
            password=auth_pb2.PasswordCredential(identifier=self.handle, password=self.password),
            device_label="example in Python")))

    def _signed_in(self, answer) -> None:
        with self.changed:
            self.keep("user", answer.user.name)
            self._take(answer.tokens)

    def _take(self, tokens) -> None:
        self.keep("refresh_token", tokens.refresh_token)
        self.access_token = tokens.access_token

    def refresh(self) -> bool:
        """A new access token. The refresh token is for one use: keep its successor at once."""
        with self.changed:
            token = self.kept("refresh_token")
        if not token:
            return False
        try:
            answer = self.auth.RefreshSession(auth_pb2.RefreshSessionRequest(refresh_token=token))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAUTHENTICATED:
                raise
            return False
        with self.changed:
            self._take(answer.tokens)
        return True

    def call(self, method, request, timeout: float = 20):
        """A call in the user's name; refreshes the session once when that is what it takes."""
        for attempt in range(2):
            try:
                return method(request, timeout=timeout,
                              metadata=[("authorization", f"Bearer {self.access_token}")])
            except grpc.RpcError as error:
                if attempt or reason(error) != "ACCESS_TOKEN_EXPIRED" or not self.refresh():
                    raise

    # Sending.

    def send(self, chat: str, text: str = "", reply_to: str = "", attachment: str = "") -> None:
        """Puts a message into the outbox: it is sent once, though it may take many attempts."""
        request = chat_pb2.SendMessageRequest(
            parent=chat, message_id=new_id(), reply_to=reply_to)
        if attachment:
            request.content.media.attachments.append(attachment)
            request.content.media.caption = text
        else:
            request.content.text.text = text
        with self.changed:
            self.cache.execute("INSERT INTO outbox VALUES (?, ?)",
                               [request.message_id, request.SerializeToString()])

    def empty_outbox(self) -> None:
        """Sends what is in the outbox, oldest first, until it is empty. The id makes a repeat of a
        send whose answer was lost harmless."""
        backoff = Backoff()
        while True:
            with self.changed:
                found = self.cache.execute(
                    "SELECT id, request FROM outbox ORDER BY id LIMIT 1").fetchone()
            if not found:
                return
            request = chat_pb2.SendMessageRequest.FromString(found[1])
            try:
                self.call(self.chat.SendMessage, request)
            except grpc.RpcError as error:
                # Only what may go away is worth another attempt.
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN,
                                        grpc.StatusCode.DEADLINE_EXCEEDED,
                                        grpc.StatusCode.RESOURCE_EXHAUSTED):
                    raise
                backoff.wait(self.over)
                continue
            backoff.reset()
            with self.changed:
                self.cache.execute("DELETE FROM outbox WHERE id = ?", [found[0]])

    # Hearing.

    def follow(self) -> None:
        """Subscribes again and again until `over`, each time from where the cache stands."""
        backoff = Backoff()
        while not self.over.is_set():
            request = chat_pb2.SubscribeRequest(
                include_ephemeral=True, auto_mark_delivered=True,
                snapshot=chat_pb2.SnapshotOptions(chat_limit=100, messages_per_chat=100))
            with self.changed:
                request.resume_token = self.kept("resume_token")
            try:
                self.stream = self.call(self.chat.Subscribe, request, timeout=None)
                self._listen(backoff)
            except grpc.RpcError as error:
                if reason(error) == "ACCESS_TOKEN_EXPIRED":
                    self.refresh()
                elif error.code() == grpc.StatusCode.UNAUTHENTICATED:
                    raise
            self.caught_up = False
            backoff.wait(self.over)

    def _listen(self, backoff: Backoff) -> None:
        pending = []
        watchdog = None
        try:
            while True:
                watchdog = threading.Timer(SILENCE, self.stream.cancel)
                watchdog.daemon = True
                watchdog.start()
                frame = next(self.stream, None)
                watchdog.cancel()
                if frame is None:
                    return
                backoff.reset()
                kind = frame.WhichOneof("event")
                if kind == "typing":
                    with self.changed:
                        self.typing.add((frame.typing.chat, frame.typing.user))
                        self.changed.notify_all()
                elif kind == "closing":
                    self.over.wait(frame.closing.retry_delay.ToTimedelta().total_seconds())
                else:
                    pending.append(frame)
                # Frames up to a token are one change. What comes behind the last token, before a
                # stream breaks, comes again.
                if frame.resume_token:
                    self.apply(pending, frame.resume_token)
                    pending = []
        finally:
            watchdog.cancel()

    def apply(self, frames, token: str) -> None:
        """Frames and token in one transaction: neither a gap nor half a change can come of it."""
        with self.changed:
            self.cache.execute("BEGIN IMMEDIATE")
            try:
                for frame in frames:
                    self._apply(frame, frame.WhichOneof("event"))
                self.keep("resume_token", token)
                self.cache.execute("COMMIT")
            except BaseException:
                self.cache.execute("ROLLBACK")
                raise
            self.changed.notify_all()

    def _apply(self, frame, kind: str) -> None:
        """Each event so that twice is as good as once; what we do not know we ignore."""
        if kind == "reset":
            # The snapshot behind it replaces everything. The outbox stays.
            self.resets += 1
            self.cache.execute("DELETE FROM message")
            self.cache.execute("DELETE FROM marker")
        elif kind == "chat_snapshot":
            for message in frame.chat_snapshot.messages:
                self._put(message)
        elif kind == "message_created":
            self._put(frame.message_created.message)
        elif kind == "message_updated":
            self._put(frame.message_updated.message)
        elif kind == "messages_deleted":
            deleted = frame.messages_deleted
            stays = deleted.scope == chat_pb2.DELETE_SCOPE_FOR_EVERYONE
            change = "UPDATE message SET text = '', attachment = '', reaction = ''" if stays \
                else "DELETE FROM message"
            for span in deleted.ranges:
                self.cache.execute(f"{change} WHERE chat = ? AND sequence BETWEEN ? AND ?",
                                   [deleted.chat, span.first_sequence, span.last_sequence])
        elif kind == "reaction_changed":
            changed = frame.reaction_changed
            self.cache.execute("UPDATE message SET reaction = ? WHERE name = ?",
                               [" ".join(r.emoji for r in changed.reactions), changed.message])
        elif kind == "receipt_moved":
            moved = frame.receipt_moved
            self.cache.execute(
                "INSERT INTO marker VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET "
                "read = max(read, ?3)", [moved.chat, moved.user, moved.read_sequence])
        elif kind == "chat_removed":
            self.cache.execute("DELETE FROM message WHERE chat = ?", [frame.chat_removed.chat])
        elif kind == "caught_up":
            self.caught_up = True

    def _put(self, message) -> None:
        media = message.content.media
        self.cache.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [
            message.name.split("/messages/")[0], message.sequence, message.name, message.sender,
            message.content.text.text or media.caption,
            " ".join(r.emoji for r in message.reactions),
            media.attachments[0] if media.attachments else "", message.reply_to])

    # Looking.

    def rows(self, query: str, *values) -> list:
        with self.changed:
            return self.cache.execute(query, values).fetchall()

    def wait(self, what: str, query: str, *values) -> tuple:
        """The first row of `query`, once there is one."""
        with self.changed:
            found = []

            def look():
                found[:] = self.cache.execute(query, values).fetchall()
                return found
            if not self.changed.wait_for(look, 60):
                raise TimeoutError(f"{self.handle} waited in vain for {what}")
            return found[0]

    def history(self, chat: str) -> list:
        """All messages of a chat, oldest first, page by page from the newest."""
        messages, token = [], ""
        while True:
            page = self.call(self.chat.ListMessages, chat_pb2.ListMessagesRequest(
                parent=chat, page_size=20, page_token=token))
            messages = list(page.messages) + messages
            token = page.older_page_token
            if not token:
                return messages

    # Files.

    def upload(self, data: bytes, name: str, upload_id: str, until: int = -1) -> str:
        """Uploads a file, or goes on where an upload broke; answers the attachment's name.
        `until` breaks it there, as a network would."""
        try:
            state = self.call(self.chat.GetAttachmentUpload,
                              chat_pb2.GetAttachmentUploadRequest(upload_id=upload_id))
            offset = state.committed_bytes
        except grpc.RpcError as error:
            if reason(error) != "UPLOAD_NOT_FOUND":
                raise
            offset = 0

        def requests():
            yield chat_pb2.UploadAttachmentRequest(header=chat_pb2.AttachmentUploadHeader(
                upload_id=upload_id, file_name=name, content_type="application/octet-stream",
                size_bytes=len(data), sha256=hashlib.sha256(data).digest(), offset=offset))
            for start in range(offset, len(data), CHUNK):
                if 0 <= until <= start:
                    raise ConnectionError("the network went away")
                yield chat_pb2.UploadAttachmentRequest(chunk=data[start:start + CHUNK])
        answer = self.call(self.chat.UploadAttachment, requests(), timeout=60)
        return answer.attachment.name

    def download(self, name: str, offset: int = 0, limit: int = 0) -> bytes:
        """A file, or a range of it. The whole is checked against its digest."""
        data, digest = b"", b""
        request = chat_pb2.DownloadAttachmentRequest(name=name, offset=offset, limit=limit)
        for part in self.call(self.chat.DownloadAttachment, request, timeout=60):
            if part.WhichOneof("payload") == "attachment":
                digest = part.attachment.sha256
            data += part.chunk
        if not offset and not limit and hashlib.sha256(data).digest() != digest:
            raise ValueError("the file came damaged")
        return data

"""A client's picture of its chats, kept by Subscribe as clients should.

Frames are gathered until one carries a resume_token; then all of them and the
token are applied together, so that the picture is never half a change and a
reconnect with the token repeats and misses nothing.
"""

import threading

import grpc

from harness import LIMIT, Person
from vencejo.chat.v1 import chat_pb2

PER_CHAT = 1000


class View:
    def __init__(self, person: Person, live: bool = True):
        self.person = person
        self.changed = threading.Condition()
        self.token = ""
        # chat → sequence → (message name, sender, text)
        self.chats = {}
        # chat → the reader's own marker
        self.marker = {}
        self.read_by = {}
        self.resets = 0
        self.connections = 0
        self.repeated = 0
        self.is_caught_up = False
        self.error = None
        self.stream = None
        self.thread = None
        self.closing = threading.Event()
        if live:
            self.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disconnect()

    # Connection.

    def connect(self) -> None:
        self.closing.clear()
        self.is_caught_up = False
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def disconnect(self) -> None:
        self.closing.set()
        if self.stream is not None:
            self.stream.cancel()
        if self.thread is not None:
            self.thread.join(LIMIT)

    def _follow(self) -> None:
        """Subscribes again and again, each time from the last applied token."""
        while not self.closing.is_set():
            request = chat_pb2.SubscribeRequest(resume_token=self.token)
            if not self.token:
                request.snapshot.chat_limit = 100
                request.snapshot.messages_per_chat = PER_CHAT
            self.connections += 1
            try:
                self.stream = self.person.stream(self.person.chat.Subscribe, request, timeout=600)
                gathered = []
                for frame in self.stream:
                    gathered.append(frame)
                    if frame.resume_token:
                        self._apply(gathered)
                        gathered = []
            except grpc.RpcError as error:
                expected = (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
                if error.code() not in expected:
                    self._fail(error)
                    return
            except Exception as error:  # told to the waiting test
                self._fail(error)
                return

    def _fail(self, error) -> None:
        with self.changed:
            self.error = error
            self.changed.notify_all()

    # Applying.

    def _apply(self, frames) -> None:
        with self.changed:
            for frame in frames:
                self._apply_one(frame, frame.WhichOneof("event"))
            self.token = frames[-1].resume_token
            self.changed.notify_all()

    def _apply_one(self, frame, kind) -> None:
        if kind == "chat_snapshot":
            self._put_chat(frame.chat_snapshot.chat)
            for message in frame.chat_snapshot.messages:
                self._put_message(message)
        elif kind == "chat_upserted":
            self._put_chat(frame.chat_upserted.chat)
        elif kind == "message_created":
            self._put_message(frame.message_created.message, created=True)
        elif kind == "receipt_moved":
            moved = frame.receipt_moved
            key = (moved.chat, moved.user)
            self.read_by[key] = max(self.read_by.get(key, 0), moved.read_sequence)
        elif kind == "unread_changed":
            unread = frame.unread_changed.unread
            chat = frame.unread_changed.chat
            first = unread.first_unread_sequence
            last = max(self.chats.get(chat, {0: None}))
            self._move_marker(chat, first - 1 if first else last)
        elif kind == "reset":
            self.resets += 1
            self.chats.clear()
            self.marker.clear()
        elif kind == "caught_up":
            self.is_caught_up = True

    def _put_chat(self, chat) -> None:
        self.chats.setdefault(chat.name, {})
        self._move_marker(chat.name, chat.self.read_sequence)

    def _put_message(self, message, created: bool = False) -> None:
        chat = "/".join(message.name.split("/")[:2])
        known = self.chats.setdefault(chat, {})
        new = (message.name, message.sender, message.content.text.text)
        if created and message.sequence in known:
            self.repeated += 1
            assert known[message.sequence] == new, f"{new} came as another {known[message.sequence]}"
        known[message.sequence] = new
        if message.sender == self.person.name:
            self._move_marker(chat, message.sequence)

    def _move_marker(self, chat: str, sequence: int) -> None:
        self.marker[chat] = max(self.marker.get(chat, 0), sequence)

    # Looking.

    def wait(self, holds, seconds: float = LIMIT) -> None:
        with self.changed:
            met = self.changed.wait_for(lambda: self.error is not None or holds(), seconds)
            if self.error is not None:
                raise self.error
            if not met:
                last = {chat: max(known, default=0) for chat, known in self.chats.items()}
                raise AssertionError(f"waited {seconds} s in vain; {self.person.handle} has {last}")

    def caught_up(self) -> None:
        self.wait(lambda: self.is_caught_up)

    def reaches(self, chat: str, sequence: int, seconds: float = LIMIT) -> None:
        self.wait(lambda: max(self.chats.get(chat, {}), default=0) >= sequence, seconds)

    def texts(self, chat: str) -> list:
        with self.changed:
            known = self.chats.get(chat, {})
            return [known[sequence][2] for sequence in sorted(known) if known[sequence][2]]

    def unread_of(self, chat: str) -> int:
        """By the rule of UnreadState: after the marker, not mine, not the system's."""
        known = self.chats.get(chat, {})
        marker = self.marker.get(chat, 0)
        count = sum(1 for sequence, (_, sender, _) in known.items()
                    if sequence > marker and sender and sender != self.person.name)
        return min(count, 999)

    def snapshot(self) -> dict:
        """chat → (unread, messages in order), as it stands here."""
        with self.changed:
            return {
                chat: (self.unread_of(chat), [(s, *known[s]) for s in sorted(known)])
                for chat, known in self.chats.items()
            }

    def fresh(self) -> dict:
        """The same as the server tells it now to somebody who knows nothing."""
        return {
            name: (chat.unread.unread_count, [
                (m.sequence, m.name, m.sender, m.content.text.text)
                for m in self.person.messages(name)])
            for name, chat in self.person.chats().items()
        }

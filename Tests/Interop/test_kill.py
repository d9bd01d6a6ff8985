"""kill -9 in a flood: what was acknowledged is there, once, and nobody misses anything.

VENCEJO_KILL_ROUNDS says how often (3 by default).
"""

import os
import random
import threading
import time
import unittest

import grpc

import harness
from base import ServerCase
from harness import message, new_id
from views import View

ROUNDS = int(os.environ.get("VENCEJO_KILL_ROUNDS", "3"))
CLIENTS = 20
# At least this share of the kills must land while sends wait for their answer;
# otherwise the test proves nothing.
IN_FLIGHT_SHARE = 0.3


class Sender(threading.Thread):
    """Sends without a pause; repeats each message until it is acknowledged."""

    def __init__(self, person, chat: str, flood: "Flood"):
        super().__init__(daemon=True)
        self.person, self.chat, self.flood = person, chat, flood
        self.error = None

    def run(self):
        number = 0
        while not self.flood.over.is_set():
            number += 1
            request = message(self.chat, f"{self.person.handle} {number}")
            try:
                self.send_until_acknowledged(request)
            except Exception as error:  # told by the test
                self.error = error
                return

    def send_until_acknowledged(self, request) -> None:
        limit = time.monotonic() + 60
        while True:
            try:
                answer = self.person.call(
                    self.person.chat.SendMessage, request, wait_for_ready=True)
                self.flood.acknowledge(request, answer)
                return
            except grpc.RpcError as error:
                # The server died under it: the same id again.
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > limit:
                    raise
                self.flood.lose()


class Flood:
    """What has been sent, and what was acknowledged."""

    def __init__(self):
        self.changed = threading.Condition()
        self.over = threading.Event()
        self.acknowledged = {}
        # Sends that were on the wire when the server died, and those of them
        # that turned out to be stored all the same.
        self.lost = 0
        self.duplicates = 0

    def lose(self) -> None:
        with self.changed:
            self.lost += 1

    def acknowledge(self, request, answer) -> None:
        with self.changed:
            self.duplicates += answer.duplicate
            self.acknowledged[answer.message.name] = (
                answer.message.sequence, request.content.text.text)
            self.changed.notify_all()

    def wait_for_more(self, count: int, senders) -> None:
        with self.changed:
            target = len(self.acknowledged) + count
            met = self.changed.wait_for(
                lambda: len(self.acknowledged) >= target or any(s.error for s in senders), 60)
        for sender in senders:
            if sender.error:
                raise sender.error
        assert met, "the flood dried up"


class Kill(ServerCase):
    def test_flood(self):
        people = [self.person(f"client{number}") for number in range(CLIENTS)]
        group = people[0].group_chat("flood", *people[1:])
        pair = people[0].direct_chat(people[1])
        views = [View(person) for person in people]
        for view in views:
            self.addCleanup(view.disconnect)
            view.caught_up()

        flood = Flood()
        self.addCleanup(flood.over.set)
        senders = [Sender(person, pair.name if index < 2 else group.name, flood)
                   for index, person in enumerate(people)]
        for sender in senders:
            sender.start()

        chance = random.Random(7447)
        landed = 0
        for _ in range(ROUNDS):
            flood.wait_for_more(chance.randint(50, 400), senders)
            before = flood.lost
            self.server.kill()
            self.server.start()
            # More than one for each client: by then all know what they lost.
            flood.wait_for_more(2 * CLIENTS, senders)
            landed += flood.lost > before
        flood.over.set()
        for sender in senders:
            sender.join(60)
            self.assertIsNone(sender.error)
            self.assertFalse(sender.is_alive(), "a sender hangs")

        share = landed / ROUNDS
        print(f"\n  kill -9: {ROUNDS} rounds, {landed} ({share:.0%}) with unacknowledged sends in "
              f"flight; {len(flood.acknowledged)} messages acknowledged; {flood.lost} sends lost "
              f"their answer, {flood.duplicates} of them were stored all the same; "
              f"{sum(view.connections for view in views)} subscriptions, "
              f"{sum(view.repeated for view in views)} events delivered twice", flush=True)
        self.assertGreaterEqual(share, IN_FLIGHT_SHARE)
        self.check_messages(people, [group.name, pair.name], flood)
        self.check_views(views, [group.name, pair.name])

    def check_messages(self, people, chats, flood):
        stored = {}
        for chat in chats:
            listed = people[0].messages(chat)
            self.assertEqual([item.sequence for item in listed], list(range(1, len(listed) + 1)),
                             "sequences are contiguous")
            for item in listed:
                if item.content.HasField("text"):
                    self.assertNotIn(item.name, stored, "stored twice")
                    stored[item.name] = (item.sequence, item.content.text.text)
        missing = flood.acknowledged.keys() - stored.keys()
        self.assertEqual(missing, set(), "acknowledged, and gone")
        self.assertEqual({name: stored[name] for name in flood.acknowledged}, flood.acknowledged)
        # Every sender repeats until it is told: so nothing else is stored either.
        self.assertEqual(stored.keys(), flood.acknowledged.keys())

    def check_views(self, views, chats):
        for view in views:
            mine = view.person.chats()
            for chat in chats:
                if chat in mine:
                    view.reaches(chat, mine[chat].last_sequence, 60)
            self.assertEqual(view.resets, 0)
            self.assertEqual(view.repeated, 0, "an event was delivered twice after a resume")
            self.assertEqual(view.snapshot(), view.fresh(), view.person.handle)


if __name__ == "__main__":
    unittest.main()

"""Fills a messenger's database for measuring: users, sessions, chats and messages, straight into
the tables of a folder that a server has made. No password is hashed and nothing is logged in."""

import hashlib
import os
import sqlite3
import time

CHANNEL, GROUP, DIRECT = 3, 2, 1
WORDS = ("swift bird roof summer evening square child window letter river bridge market coffee "
         "orange garden street train station ticket morning winter harbour island captain "
         "lantern violin teacher pencil ladder mountain").split()


def uuid7(milliseconds: int) -> bytes:
    number = milliseconds << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 7 << 76
    return (number & ~(3 << 62) | 2 << 62).to_bytes(16, "big")


def text(id: bytes) -> str:
    digits = id.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def keys(*numbers: int) -> bytes:
    """As the store keeps numbers: zigzag, seven bits to a byte."""
    made = bytearray()
    for number in numbers:
        rest = number << 1
        while rest >= 0x80:
            made.append(rest & 0x7F | 0x80)
            rest >>= 7
        made.append(rest)
    return bytes(made)


class Fixture:
    def __init__(self, folder: str):
        self.database = sqlite3.connect(f"{folder}/vencejo.sqlite", isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
        self.database.execute("PRAGMA cache_size = -200000")
        self.database.execute("BEGIN")
        self.now = int(time.time() * 1e6)
        self.position = self.database.execute("SELECT last_position FROM log_state").fetchone()[0]

    def close(self) -> None:
        self.database.execute("UPDATE log_state SET last_position = ?", [self.position])
        self.database.execute("COMMIT")
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database.close()

    def user(self, handle: str) -> tuple[int, str]:
        """(key, access token)"""
        run = self.database.execute
        user = run(
            "INSERT INTO user(uuid, handle, email, display_name, display_key, role, create_us, "
            "update_us, version, salt, hash, cost, block_size, parallelism) "
            "VALUES (?, ?, '', ?, ?, 1, ?, ?, 1, x'00', x'00', 16384, 8, 5)",
            [uuid7(self.now // 1000), handle, handle, handle, self.now, self.now]).lastrowid
        end = self.now + 86_400_000_000
        session = run(
            "INSERT INTO session(uuid, user_id, device_id, device_label, client_version, "
            "create_us, last_seen_us, expire_us) VALUES (?, ?, '', '', '', ?, ?, ?)",
            [uuid7(self.now // 1000), user, self.now, self.now, end]).lastrowid
        token = os.urandom(24).hex()
        run("INSERT INTO access_token(hash, session_id, expire_us) VALUES (?, ?, ?)",
            [hashlib.sha256(token.encode()).digest(), session, end])
        return user, token

    def event(self, chat: int, kind: int, *numbers: int) -> None:
        self.position += 1
        self.database.execute(
            "INSERT INTO event(pos, chat_id, kind, keys, last, commit_us) VALUES (?, ?, ?, ?, 1, ?)",
            [self.position, chat, kind, keys(*numbers), self.now])

    def chat(self, kind: int, title: str, members: list[int]) -> tuple[int, str]:
        """(key, name); the first member owns it."""
        id = uuid7(self.now // 1000)
        run = self.database.execute
        self.event(0, 11, 0)
        chat = run(
            "INSERT INTO chat(uuid, kind, title, member_count, last_seq, last_pos, create_us, "
            "update_us, activity_us, version) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, 1)",
            [id, kind, title, len(members), self.position, self.now, self.now, self.now]).lastrowid
        run("UPDATE event SET chat_id = ? WHERE pos = ?", [chat, self.position])
        role = {CHANNEL: 1, GROUP: 2, DIRECT: 2}[kind]
        self.database.executemany(
            "INSERT INTO member(chat_id, user_id, role, state, join_us, read_seq, shown_seq, "
            "visible_from, from_pos, version) VALUES (?, ?, ?, 1, ?, 0, 0, 1, ?, 1)",
            [(chat, user, 4 if kind != DIRECT and index == 0 else role, self.now, self.position)
             for index, user in enumerate(members)])
        return chat, f"chats/{text(id)}"

    def messages(self, chats: list[int], senders: dict[int, list[int]], count: int) -> None:
        """`count` messages in each chat, in turns, as if all talked at once."""
        run = self.database.execute
        number = 0
        for sequence in range(1, count + 1):
            for chat in chats:
                number += 1
                self.now += 1
                body = " ".join(WORDS[(number * step + step) % len(WORDS)] for step in (1, 7, 11, 13))
                # One in ten thousand holds a rare word.
                body += " albatross" if number % 10_000 == 0 else f" n{number}"
                run("INSERT INTO message(chat_id, seq, uuid, sender_id, kind, body, sent_us, version) "
                    "VALUES (?, ?, ?, ?, 1, ?, ?, 1)",
                    [chat, sequence, uuid7(self.now // 1000),
                     senders[chat][sequence % len(senders[chat])], body, self.now])
                self.event(chat, 10, sequence)
                # Their activity moves as they talk.
                if sequence == count:
                    run("UPDATE chat SET last_seq = ?, last_pos = ?, activity_us = ? "
                        "WHERE chat_id = ?", [count, self.position, self.now, chat])

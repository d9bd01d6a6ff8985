"""What an operator does: settings, reloading, accounts, backups, a full disk."""

import hashlib
import os
import resource
import shutil
import signal
import tempfile
import time
import unittest
from pathlib import Path

import grpc

import harness
from base import ServerCase
from harness import LIMIT, message, new_id
from vencejo.auth.v1 import auth_pb2
from vencejo.chat.v1 import chat_pb2

Code = grpc.StatusCode


def until(question):
    """Waits until the question is answered with something true."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if answer := question():
            return answer
    raise AssertionError("it never came true")


def upload(person, content: bytes):
    header = chat_pb2.AttachmentUploadHeader(
        upload_id=new_id(), file_name="a.bin", size_bytes=len(content),
        sha256=hashlib.sha256(content).digest())
    return person.call(person.chat.UploadAttachment, iter([
        chat_pb2.UploadAttachmentRequest(header=header),
        chat_pb2.UploadAttachmentRequest(chunk=content)])).attachment


def download(person, name: str) -> bytes:
    return b"".join(part.chunk for part in person.stream(
        person.chat.DownloadAttachment, chat_pb2.DownloadAttachmentRequest(name=name)))


class Settings(unittest.TestCase):
    def test_what_is_not_understood_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "vencejo.conf")
            file.write_text("data = x\nlog-levle = debug\n")
            ended = harness.run("serve", "--config", str(file))
            self.assertEqual(ended.returncode, 1)
            self.assertIn(f"{file}:2: 'log-levle' is no setting (did you mean 'log-level'?)",
                          ended.stderr)
            ended = harness.run("serve", env={"VENCEJO_LOGLEVEL": "debug"})
            self.assertIn("did you mean VENCEJO_LOG_LEVEL?", ended.stderr)

    def test_flags_before_variables_before_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "vencejo.conf")
            file.write_text(f"listen = 127.0.0.1:1\ndata = {folder}/file # a comment\n"
                            "open-sign-up = true\n")
            peer = harness.Peer(
                [harness.program(), "serve", "--config", str(file), "--listen", "127.0.0.1:0"],
                env={"VENCEJO_DATA": f"{folder}/variable"})
            self.addCleanup(peer.kill)
            self.assertTrue(Path(folder, "variable/vencejo.sqlite").exists())
            self.assertFalse(Path(folder, "file").exists())
            self.assertEqual(peer.stop(), 0)

    def test_hangup_takes_over_what_may_change(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "vencejo.conf")
            file.write_text("change-limit = 1000:100\n")
            server = harness.Server("--config", str(file))
            self.addCleanup(server.close)
            ana = harness.Person(server.address, "ana")
            self.addCleanup(ana.close)
            chat = ana.group_chat("G")
            file.write_text("change-limit = 1:0.001\nthreads = 3\n")
            server.peer.process.send_signal(signal.SIGHUP)
            until(lambda: "wait for a restart: threads" in server.peer.errors())

            def refused():
                try:
                    ana.send(chat.name, "again")
                except grpc.RpcError as error:
                    return error
            error = until(refused)
            self.assertEqual(error.code(), Code.RESOURCE_EXHAUSTED)
            self.assertEqual(harness.error_info(error)[0], "RATE_LIMITED")
            # What is wrong changes nothing.
            file.write_text("change-limit = many\n")
            server.peer.process.send_signal(signal.SIGHUP)
            until(lambda: "kept the settings as they were" in server.peer.errors())
            file.write_text("change-limit = 1000:1000\n")
            server.peer.process.send_signal(signal.SIGHUP)
            until(lambda: not refused())


class Admin(ServerCase):
    def admin(self, *arguments: str, code: int = 0) -> str:
        ended = harness.run("admin", *arguments, "--data", self.server.data)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stdout

    def test_accounts_beside_a_running_server(self):
        ana, ben = (self.person(f"{name}-{new_id()[-6:]}") for name in ("ana", "ben"))
        users = self.admin("users").splitlines()
        self.assertTrue(any(line.startswith(ben.handle + "\thuman\tactive\tmember\t")
                            for line in users), users)
        self.assertEqual(len(self.admin("sessions", ben.handle).splitlines()), 1)
        stream = ben.stream(ben.chat.Subscribe, chat_pb2.SubscribeRequest())
        next(stream)
        self.admin("sign-out", ben.handle)
        # The stream ends at once, with its session.
        with self.assertRaises(grpc.RpcError) as caught:
            for frame in stream:
                self.assertTrue(frame.HasField("closing"), frame)
        self.assertEqual(harness.error_info(caught.exception)[0], "SESSION_REVOKED")
        self.assertEqual(self.admin("sessions", ben.handle), "")
        self.admin("suspend", ben.handle)
        self.fails(lambda: harness.Person(self.server.address, ben.handle, sign_up=False),
                   Code.UNAUTHENTICATED, "ACCOUNT_SUSPENDED")
        self.admin("reinstate", ben.handle)
        harness.Person(self.server.address, ben.handle, sign_up=False).close()
        ended = harness.run("admin", "sign-out", "nobody", "--data", self.server.data)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("USER_NOT_FOUND", ended.stderr)
        self.assertEqual(self.admin("doctor"), "all is well\n")

    def test_a_backup_has_the_files_of_attachments(self):
        ana = self.person(f"ana-{new_id()[-6:]}")
        chat = ana.group_chat("G")
        content = os.urandom(300_000)
        attachment = upload(ana, content)
        ana.call(ana.chat.SendMessage, chat_pb2.SendMessageRequest(
            parent=chat.name, message_id=new_id(), content=chat_pb2.MessageContent(
                media=chat_pb2.MediaContent(attachments=[attachment.name]))))
        folder = tempfile.mkdtemp(prefix="vencejo-backup-")
        self.addCleanup(shutil.rmtree, folder)
        self.admin("backup", f"{folder}/copy")
        ended = harness.run("admin", "backup", f"{folder}/copy", "--data", self.server.data)
        self.assertIn("BACKUP_EXISTS", ended.stderr)
        ana.send(chat.name, "after the backup")
        ended = harness.run("admin", "restore", f"{folder}/copy", "--data", f"{folder}/data")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        second = harness.Peer([harness.program(), "serve", "--listen", "127.0.0.1:0", "--data",
                               f"{folder}/data"])
        self.addCleanup(second.kill)
        back = harness.Person(second.address, ana.handle, sign_up=False)
        self.addCleanup(back.close)
        self.assertEqual(download(back, attachment.name), content)
        self.assertEqual([item.content.text.text for item in back.messages(chat.name)][-1:], [""])
        # The doctor misses a file that is gone.
        for file in Path(folder, "data/assets").rglob("*"):
            if file.is_file():
                file.unlink()
        ended = harness.run("admin", "doctor", "--data", f"{folder}/data")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("the file of an attachment is gone", ended.stdout)


class Folder(unittest.TestCase):
    """Commands for a folder that no server uses."""

    def admin(self, *arguments: str):
        ended = harness.run("admin", *arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_export_import_retain_compact(self):
        server = harness.Server()
        self.addCleanup(server.close)
        ana = harness.Person(server.address, "ana")
        chat = ana.group_chat("G")
        attachment = upload(ana, b"some bytes")
        ana.send(chat.name, "hola")
        ana.call(ana.chat.SendMessage, chat_pb2.SendMessageRequest(
            parent=chat.name, message_id=new_id(), content=chat_pb2.MessageContent(
                media=chat_pb2.MediaContent(attachments=[attachment.name], caption="look"))))
        ana.close()
        data = ("--data", server.data)
        ended = harness.run("admin", "compact", *data)
        self.assertIn("DATA_FOLDER_IN_USE", ended.stderr)
        server.stop()
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/chat.jsonl"
            self.admin("export", chat.name, file, "--owner", "ana", *data)
            said = self.admin("import-lines", file, "--owner", "ana", "--title", "Copy", *data)
            self.assertIn("imported\t3\nskipped\t0\n", said)
            said = self.admin("import-lines", file, "--owner", "ana", *data)
            self.assertIn("imported\t0\nskipped\t3\n", said)
        self.admin("retain", "--days", "1", *data)
        self.admin("compact", *data)
        self.assertEqual(self.admin("doctor", *data), "all is well\n")
        server.start()
        ana = harness.Person(server.address, "ana", sign_up=False)
        self.addCleanup(ana.close)
        copy = next(item for item in ana.chats().values() if item.title == "Copy")
        self.assertEqual([item.content.text.text or item.content.media.caption
                          for item in ana.messages(copy.name)][1:], ["hola", "look"])


class DiskFull(unittest.TestCase):
    """A limit on the size of files stands for a disk that is full."""

    def test_sends_fail_and_come_back(self):
        server = harness.Server()
        self.addCleanup(server.close)
        ana = harness.Person(server.address, "ana")
        self.addCleanup(ana.close)
        chat = ana.group_chat("G")
        stream = ana.stream(ana.chat.Subscribe, chat_pb2.SubscribeRequest())
        next(stream)
        pid = server.peer.process.pid
        biggest = max(file.stat().st_size for file in Path(server.data).iterdir())
        free = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (biggest + 300_000, free[1]))
        acknowledged, refused = [], []
        while len(refused) < 20:
            identity = new_id()
            try:
                ana.send(chat.name, "full " * 5000, identity)
                acknowledged.append(identity)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), Code.RESOURCE_EXHAUSTED, error)
                self.assertEqual(harness.error_info(error)[0], "DISK_FULL")
                refused.append(identity)
        ids = lambda: [item.name.rsplit("/", 1)[1] for item in ana.messages(chat.name)[1:]]
        self.assertEqual(ids(), acknowledged)
        # The stream has heard of each of them, and goes on.
        heard = []
        while len(heard) < len(acknowledged):
            frame = next(stream)
            if frame.HasField("message_created"):
                heard.append(frame.message_created.message.name.rsplit("/", 1)[1])
        self.assertEqual(heard, acknowledged)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
        for identity in refused:
            ana.send(chat.name, "room again", identity)
        self.assertEqual(ids(), acknowledged + refused)
        server.kill()
        server.start()
        until(lambda: ids_or_none(ana, chat) == acknowledged + refused)
        self.assertEqual(
            harness.run("admin", "doctor", "--data", server.data).stdout, "all is well\n")


def ids_or_none(person, chat):
    try:
        return [item.name.rsplit("/", 1)[1] for item in person.messages(chat.name)[1:]]
    except grpc.RpcError:
        return None


if __name__ == "__main__":
    unittest.main()

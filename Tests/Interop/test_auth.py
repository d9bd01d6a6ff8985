"""Accounts and sessions."""

import unittest

import grpc

import harness
from base import ServerCase
from harness import LIMIT, PASSWORD, new_id
from vencejo.auth.v1 import auth_pb2
from vencejo.chat.v1 import chat_pb2

Code = grpc.StatusCode


class Auth(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The first account is the administrator; the tests' own come after.
        cls.first = harness.Person(cls.server.address, "first")
        cls.addClassCleanup(cls.first.close)

    def test_server_info_needs_no_token(self):
        info = self.first.auth.GetServerInfo(auth_pb2.GetServerInfoRequest(), timeout=LIMIT)
        self.assertTrue(info.server_version)
        self.assertLessEqual(
            {"vencejo.auth.v1", "vencejo.chat.v1", "vencejo.record.v1"}, set(info.packages))
        self.assertTrue(info.sign_up_open, "loopback may sign up")
        self.assertGreater(info.server_time.seconds, 1_700_000_000)

    def test_first_account_is_administrator_and_no_other(self):
        self.assertEqual(self.first.user.role, auth_pb2.SERVER_ROLE_ADMINISTRATOR)
        self.assertEqual(self.person("second").user.role, auth_pb2.SERVER_ROLE_MEMBER)

    def test_sign_up_sign_in_and_who_am_i(self):
        cora = self.person("cora", display_name="Córa 🐦")
        self.assertRegex(cora.name, r"^users/[^/]+$")
        again = self.person("cora", sign_up=False)
        self.assertEqual(again.name, cora.name)
        self.assertNotEqual(again.tokens.access_token, cora.tokens.access_token)
        me = again.call(again.auth.GetUser, auth_pb2.GetUserRequest(name="users/me")).user
        self.assertEqual((me.name, me.handle), (cora.name, "cora"))

    def test_handle_is_taken_once(self):
        self.person("dora")
        for handle in ("dora", "DORA"):
            self.fails(lambda: self.person(handle), Code.ALREADY_EXISTS, service="auth")

    def test_bad_handles_and_passwords_are_refused(self):
        stub = self.first.auth
        for handle in ("", "a", "-x-", "with space", "ñandú", "x" * 40):
            request = auth_pb2.SignUpRequest(request_id=new_id(), handle=handle, password=PASSWORD)
            self.fails(lambda: stub.SignUp(request, timeout=LIMIT), Code.INVALID_ARGUMENT,
                       service="auth")
        request = auth_pb2.SignUpRequest(request_id=new_id(), handle="emma", password="")
        self.fails(lambda: stub.SignUp(request, timeout=LIMIT), Code.INVALID_ARGUMENT, service="auth")

    def test_wrong_password_and_unknown_handle_look_alike(self):
        self.person("fay")
        for identifier, password in (("fay", "wrong"), ("nobody", PASSWORD)):
            request = auth_pb2.SignInRequest(password=auth_pb2.PasswordCredential(
                identifier=identifier, password=password))
            self.fails(lambda: self.first.auth.SignIn(request, timeout=LIMIT),
                       Code.UNAUTHENTICATED, "BAD_CREDENTIAL", "auth")

    def test_every_other_call_needs_a_token(self):
        calls = [
            (self.first.auth.GetUser, auth_pb2.GetUserRequest(name="users/me")),
            (self.first.chat.ListChats, chat_pb2.ListChatsRequest()),
        ]
        for method, request in calls:
            for metadata in (
                (),
                (("authorization", ""),),
                (("authorization", "Bearer "),),
                (("authorization", "Bearer nonsense"),),
                (("authorization", "Basic " + self.first.tokens.access_token),),
                (("authorization", "Bearer " + self.first.tokens.access_token[:-1]),),
                (("authorization", "Bearer " + "x" * 4000),),
            ):
                self.fails(lambda: method(request, timeout=LIMIT, metadata=metadata),
                           Code.UNAUTHENTICATED)

    def test_refresh_rotates_and_forgives_one_lost_answer(self):
        gil = self.person("gil")
        refresh = lambda token: gil.auth.RefreshSession(
            auth_pb2.RefreshSessionRequest(refresh_token=token), timeout=LIMIT).tokens
        first = gil.tokens.refresh_token
        second = refresh(first)
        self.assertNotEqual(second.refresh_token, first)
        # The answer was lost: the same token answers with the same successor.
        self.assertEqual(refresh(first).refresh_token, second.refresh_token)
        gil.tokens = second
        gil.chats()
        # Once the successor has been used, the old one is a stolen one.
        third = refresh(second.refresh_token)
        self.assertNotEqual(third.refresh_token, second.refresh_token)
        self.fails(lambda: refresh(first), Code.UNAUTHENTICATED, service="auth")
        gil.tokens = third
        self.fails(gil.chats, Code.UNAUTHENTICATED)

    def test_sign_out_ends_the_session_and_its_streams(self):
        hal = self.person("hal")
        stream = hal.stream(hal.chat.Subscribe, chat_pb2.SubscribeRequest())
        self.assertTrue(any(frame.HasField("caught_up") for frame in take_until_caught_up(stream)))
        hal.call(hal.auth.SignOut, auth_pb2.SignOutRequest())
        self.fails(hal.chats, Code.UNAUTHENTICATED, "SESSION_REVOKED")
        # Perhaps a Closing frame, then the end: at once, not at the deadline.
        frames = []
        try:
            frames.extend(stream)
        except grpc.RpcError:
            self.assertIn(stream.code(), (Code.UNAUTHENTICATED, Code.OK))
        self.assertTrue(all(frame.HasField("closing") for frame in frames))
        # Another session of the same user lives on.
        self.person("hal", sign_up=False).chats()

    def test_sessions_survive_a_restart(self):
        ida = self.person("ida")
        self.server.kill()
        self.server.start()
        me = ida.call(ida.auth.GetUser, auth_pb2.GetUserRequest(name="users/me"),
                      wait_for_ready=True).user
        self.assertEqual(me.name, ida.name)

    def test_tokens_are_stored_hashed(self):
        jon = self.person("jon")
        found = {}
        for path, content in data_files(self.server.data):
            for secret in (jon.tokens.access_token, jon.tokens.refresh_token, PASSWORD):
                if secret.encode() in content:
                    found[path] = secret
        self.assertEqual(found, {})


def take_until_caught_up(stream):
    for frame in stream:
        yield frame
        if frame.HasField("caught_up"):
            return


def data_files(folder):
    from pathlib import Path

    for path in Path(folder).rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


if __name__ == "__main__":
    unittest.main()

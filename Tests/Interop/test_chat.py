"""Chats, messages, unread counts and the stream that misses nothing."""

import unittest

import grpc

from base import ServerCase
from harness import message, new_id
from vencejo.chat.v1 import chat_pb2
from views import View

Code = grpc.StatusCode


def texts(messages) -> list:
    return [item.content.text.text for item in messages if item.content.HasField("text")]


class Chats(ServerCase):
    def pair(self, *handles):
        people = [self.person(f"{handle}-{new_id()[-6:]}") for handle in handles]
        return *people, people[0].direct_chat(people[1])

    def test_messages_both_ways(self):
        ana, ben, chat = self.pair("ana", "ben")
        said = ["hola", "¿qué tal?", "muy bien 🐦", "燕子"]
        for index, text in enumerate(said):
            (ana, ben)[index % 2].send(chat.name, text)
        for reader in (ana, ben):
            listed = reader.messages(chat.name)
            self.assertEqual(texts(listed), said)
            sequences = [item.sequence for item in listed]
            self.assertEqual(sequences, list(range(1, len(listed) + 1)), "contiguous from 1")
            for item in listed:
                if item.sender:
                    self.assertEqual(item.mine, item.sender == reader.name)

    def test_direct_chat_exists_once(self):
        ana, ben, chat = self.pair("ana", "ben")
        self.assertEqual(ana.direct_chat(ben).name, chat.name)
        self.assertEqual(ben.direct_chat(ana).name, chat.name)
        self.assertEqual(chat.peer, ben.name)
        self.assertEqual(ben.chats()[chat.name].peer, ana.name)

    def test_group(self):
        ana, ben, _ = self.pair("ana", "ben")
        cleo = self.person("cleo-" + new_id()[-6:])
        group = ana.group_chat("The three", ben, cleo)
        self.assertEqual((group.title, group.member_count), ("The three", 3))
        cleo.send(group.name, "hi all")
        for reader in (ana, ben):
            self.assertEqual(reader.chats()[group.name].unread.unread_count, 1)

    def test_unread_is_what_came_after_the_marker(self):
        ana, ben, chat = self.pair("ana", "ben")
        for number in range(5):
            ana.send(chat.name, f"message {number}")
        unread = ben.chats()[chat.name].unread
        self.assertEqual(unread.unread_count, 5)
        self.assertEqual(ana.chats()[chat.name].unread.unread_count, 0, "own messages do not count")

        third = [m for m in ben.messages(chat.name) if m.content.text.text == "message 2"][0]
        mark = lambda sequence: ben.call(
            ben.chat.MarkRead, chat_pb2.MarkReadRequest(chat=chat.name, up_to_sequence=sequence))
        self.assertEqual(mark(third.sequence).unread.unread_count, 2)
        # Back is no error and moves nothing.
        self.assertEqual(mark(1).unread.unread_count, 2)
        self.assertEqual(ben.chats()[chat.name].unread.unread_count, 2)
        # Sending implies having read.
        ben.send(chat.name, "I saw them all")
        self.assertEqual(ben.chats()[chat.name].unread.unread_count, 0)

    def test_list_shows_the_last_message_first(self):
        ana, ben, chat = self.pair("ana", "ben")
        cleo = self.person("cleo-" + new_id()[-6:])
        other = ana.direct_chat(cleo)
        for target, text in ((other, "to cleo"), (chat, "to ben")):
            ana.send(target.name, text)
        chats = list(ana.chats().values())
        self.assertEqual([item.name for item in chats], [chat.name, other.name])
        self.assertEqual(chats[0].last_message.content.text.text, "to ben")

    def test_send_is_idempotent(self):
        ana, ben, chat = self.pair("ana", "ben")
        request = message(chat.name, "once")
        first = ana.call(ana.chat.SendMessage, request)
        self.assertFalse(first.duplicate)
        second = ana.call(ana.chat.SendMessage, request)
        self.assertTrue(second.duplicate)
        self.assertEqual(second.message.sequence, first.message.sequence)
        self.assertEqual(texts(ben.messages(chat.name)), ["once"])

    def test_send_is_idempotent_across_a_kill(self):
        ana, ben, chat = self.pair("ana", "ben")
        request = message(chat.name, "once, before the end")
        first = ana.call(ana.chat.SendMessage, request)
        self.server.kill()
        self.server.start()
        second = ana.call(ana.chat.SendMessage, request, wait_for_ready=True)
        self.assertTrue(second.duplicate)
        self.assertEqual(second.message.sequence, first.message.sequence)
        self.assertEqual(texts(ben.messages(chat.name)), ["once, before the end"])

    def test_pages(self):
        ana, ben, chat = self.pair("ana", "ben")
        for number in range(25):
            ana.send(chat.name, str(number))
        self.assertEqual(texts(ben.messages(chat.name, page_size=7)), [str(i) for i in range(25)])
        around = ben.call(ben.chat.ListMessages, chat_pb2.ListMessagesRequest(
            parent=chat.name, page_size=4, around_sequence=12))
        self.assertIn(12, [item.sequence for item in around.messages])
        after = ben.call(ben.chat.ListMessages, chat_pb2.ListMessagesRequest(
            parent=chat.name, page_size=100, after_sequence=20))
        self.assertEqual([item.sequence for item in after.messages],
                         list(range(21, ben.chats()[chat.name].last_sequence + 1)))

    def test_profiles_give_names(self):
        ana, ben, _ = self.pair("ana", "ben")
        profiles = ana.call(ana.chat.BatchGetProfiles, chat_pb2.BatchGetProfilesRequest(
            names=[f"{ben.name}/profile", f"{ana.name}/profile"])).profiles
        self.assertEqual([item.user for item in profiles], [ben.name, ana.name])
        self.assertEqual(profiles[0].display_name, ben.handle.capitalize())

    # The stream.

    def test_live(self):
        ana, ben, chat = self.pair("ana", "ben")
        with View(ben) as view:
            view.caught_up()
            for number in range(50):
                ana.send(chat.name, str(number))
            view.reaches(chat.name, ben.chats()[chat.name].last_sequence)
            self.assertEqual(view.texts(chat.name), [str(i) for i in range(50)])
            self.assertEqual(view.snapshot(), view.fresh())

    def test_resume_misses_nothing_across_a_kill(self):
        ana, ben, chat = self.pair("ana", "ben")
        with View(ben) as view:
            view.caught_up()
            ana.send(chat.name, "seen live")
            view.reaches(chat.name, ana.chats()[chat.name].last_sequence)
            view.disconnect()
            for number in range(20):
                ana.send(chat.name, f"missed {number}")
            self.server.kill()
            self.server.start()
            ana.send(chat.name, "after the restart", wait_for_ready=True)
            view.connect()
            view.reaches(chat.name, ana.chats()[chat.name].last_sequence)
            self.assertEqual(view.texts(chat.name), [
                "seen live", *(f"missed {i}" for i in range(20)), "after the restart"])
            self.assertEqual(view.resets, 0)
            self.assertEqual(view.snapshot(), view.fresh())

    def test_list_then_subscribe_leaves_no_gap(self):
        ana, ben, chat = self.pair("ana", "ben")
        page = ben.call(ben.chat.ListChats, chat_pb2.ListChatsRequest())
        ana.send(chat.name, "between the two calls")
        frames = ben.stream(ben.chat.Subscribe, chat_pb2.SubscribeRequest(
            resume_token=page.resume_token))
        created = next(frame for frame in frames if frame.HasField("message_created"))
        self.assertEqual(created.message_created.message.content.text.text, "between the two calls")
        self.assertTrue(created.historical)
        frames.cancel()

    def test_list_events_is_the_same_feed(self):
        ana, ben, chat = self.pair("ana", "ben")
        ask = lambda token: ben.call(
            ben.chat.ListEvents, chat_pb2.ListEventsRequest(resume_token=token, page_size=3))
        start = ask("")
        self.assertEqual(len(start.events), 0)
        for number in range(10):
            ana.send(chat.name, str(number))
        seen, token, pages = [], start.resume_token, 0
        while True:
            page = ask(token)
            pages += 1
            seen += [event.message_created.message.content.text.text for event in page.events
                     if event.HasField("message_created")]
            token = page.resume_token
            if not page.more_available:
                break
        self.assertEqual(seen, [str(i) for i in range(10)])
        self.assertGreater(pages, 2)
        self.assertEqual(len(ask(token).events), 0)

    def test_marker_of_the_other_device(self):
        ana, ben, chat = self.pair("ana", "ben")
        ana.send(chat.name, "read me")
        phone = self.person(ben.handle, sign_up=False)
        with View(phone) as view, View(ana) as sender:
            view.caught_up(), sender.caught_up()
            last = ben.chats()[chat.name].last_sequence
            ben.call(ben.chat.MarkRead, chat_pb2.MarkReadRequest(
                chat=chat.name, up_to_sequence=last))
            view.wait(lambda: view.unread_of(chat.name) == 0)
            sender.wait(lambda: sender.read_by.get((chat.name, ben.name), 0) >= last)

    def test_a_stranger_hears_and_sees_nothing(self):
        ana, ben, chat = self.pair("ana", "ben")
        eve = self.person("eve-" + new_id()[-6:])
        with View(eve) as view:
            view.caught_up()
            ana.send(chat.name, "between us")
            mine = eve.call(eve.chat.CreateChat, chat_pb2.CreateChatRequest(
                request_id=new_id(), chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_SELF))).chat
            eve.send(mine.name, "to myself")
            # What was sent before it would have come before it.
            view.wait(lambda: "to myself" in view.texts(mine.name))
            self.assertEqual(view.texts(chat.name), [])
        for call in (
            lambda: eve.call(eve.chat.GetChat, chat_pb2.GetChatRequest(name=chat.name)),
            lambda: eve.messages(chat.name),
            lambda: eve.send(chat.name, "let me in"),
            lambda: eve.call(eve.chat.MarkRead, chat_pb2.MarkReadRequest(
                chat=chat.name, up_to_sequence=1)),
        ):
            self.fails(call, Code.NOT_FOUND, "CHAT_NOT_FOUND", "chat")

    def test_wrong_requests(self):
        ana, ben, chat = self.pair("ana", "ben")
        too_long = "x" * (64 * 1024 + 1)
        for call in (
            lambda: ana.send(chat.name, ""),
            lambda: ana.send(chat.name, too_long),
            lambda: ana.send(chat.name, "hi", "no uuid"),
            lambda: ana.send("chats", "hi"),
            lambda: ana.send("", "hi"),
            lambda: ana.call(ana.chat.SendMessage, chat_pb2.SendMessageRequest(
                parent=chat.name, message_id=new_id())),
            lambda: ana.call(ana.chat.ListChats, chat_pb2.ListChatsRequest(page_size=-1)),
            lambda: ana.call(ana.chat.ListChats, chat_pb2.ListChatsRequest(page_token="forged")),
            lambda: ana.call(ana.chat.ListEvents, chat_pb2.ListEventsRequest(resume_token="forged")),
            lambda: ana.call(ana.chat.CreateChat, chat_pb2.CreateChatRequest()),
        ):
            self.fails(call, Code.INVALID_ARGUMENT, service="chat")
        unknown = "chats/" + new_id()
        self.fails(lambda: ana.send(unknown, "hi"), Code.NOT_FOUND, "CHAT_NOT_FOUND", "chat")
        ana.send(chat.name, too_long[:-1])


if __name__ == "__main__":
    unittest.main()

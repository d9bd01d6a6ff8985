"""A chat that somebody is not in, and one that is not there: the same to them, whatever they ask."""

import re
import unittest

import grpc
from google.protobuf import field_mask_pb2

from base import ServerCase
from harness import error_info, new_id
from vencejo.chat.v1 import chat_pb2

# Of the methods that name a chat. The others answer of the caller alone.
WITHOUT_A_CHAT = {
    "BatchGetProfiles", "BlockUser", "CreateChat", "CreatePushEndpoint", "DeletePushEndpoint",
    "DownloadAttachment", "GetAttachment", "GetAttachmentUpload", "GetProfile", "GetUnreadSummary",
    "ImportChat", "JoinChat", "ListBlockedUsers", "ListChats", "ListNotifications",
    "ListPushEndpoints", "ListReports", "MarkNotificationsRead", "ResolveReport", "SearchProfiles",
    "SetPresence", "UnblockUser", "UpdateProfile", "UploadAttachment",
}


def requests(chat: str, message: str, poll: str, member: str):
    """(method, request) for each method that names a chat."""
    text = chat_pb2.MessageContent(text=chat_pb2.TextContent(text="hi"))
    mask = lambda *paths: field_mask_pb2.FieldMask(paths=paths)
    ranges = [chat_pb2.SequenceRange(first_sequence=1, last_sequence=2)]
    fields = {
        "GetChat": dict(name=chat), "DeleteChat": dict(name=chat), "LeaveChat": dict(name=chat),
        "UpdateChat": dict(chat=dict(name=chat, title="T"), update_mask=mask("title")),
        "UpdateChatSettings": dict(
            settings=dict(name=f"{chat}/settings", archived=True), update_mask=mask("archived")),
        "ClearChat": dict(name=chat, up_to_sequence=1), "ExportChat": dict(name=chat, format=1),
        "ListMembers": dict(parent=chat), "AddMembers": dict(parent=chat, users=[member]),
        "RemoveMember": dict(name=f"{chat}/members/{member[6:]}"),
        "UpdateMember": dict(
            member=dict(name=f"{chat}/members/{member[6:]}", role=3), update_mask=mask("role")),
        "ListInvites": dict(parent=chat), "CreateInvite": dict(parent=chat, invite={}),
        "RevokeInvite": dict(name=f"{chat}/invites/{new_id()}"),
        "ListJoinRequests": dict(parent=chat),
        "AnswerJoinRequest": dict(name=f"{chat}/joinRequests/{member[6:]}", approve=True),
        "SendMessage": dict(parent=chat, message_id=new_id(), content=text),
        "ListMessages": dict(parent=chat), "GetMessage": dict(name=message),
        "EditMessage": dict(name=message, content=text),
        "DeleteMessages": dict(parent=chat, ranges=ranges, scope=1),
        "ForwardMessages": dict(names=[message], target_chats=[chat], message_ids=[new_id()]),
        "SetReaction": dict(message=message, emoji="👍"), "ListReactions": dict(parent=message),
        "VotePoll": dict(name=poll, option_ids=[1]), "ListReceipts": dict(parent=message),
        "SetMessagePinned": dict(name=message, pinned=True),
        "SetMessageStarred": dict(name=message, starred=True),
        "MarkRead": dict(chat=chat, up_to_sequence=1),
        "MarkDelivered": dict(markers=[dict(chat=chat, up_to_sequence=1)]),
        "SearchMessages": dict(query="hi", chats=[chat]), "SendTyping": dict(chat=chat, state=1),
        "ReportMessage": dict(name=message, reason="r"), "Subscribe": dict(chats=[chat]),
        "ListEvents": dict(chats=[chat]),
    }
    return {name: getattr(chat_pb2, f"{name}Request")(**parts) for name, parts in fields.items()}


class Strangers(ServerCase):
    def answer(self, person, method: str, request):
        try:
            answer = person.call(getattr(person.chat, method), request)
            if method in ("Subscribe", "ExportChat"):
                answer = next(answer)
            return "done", str(answer)
        except grpc.RpcError as error:
            text = f"{error.code()} {error.details()} {error_info(error)}"
            return "refused", re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)

    def test_what_is_not_theirs_is_not_there(self):
        ana, ben, eve = (self.person(f"{handle}-{new_id()[-6:]}") for handle in ("ana", "ben", "eve"))
        group = ana.group_chat("Secret", ben).name
        message = ana.send(group, "hi").message.name
        poll = ana.call(ana.chat.SendMessage, chat_pb2.SendMessageRequest(
            parent=group, message_id=new_id(), content=chat_pb2.MessageContent(
                poll=chat_pb2.PollContent(question="?", options=[
                    chat_pb2.PollOption(option_id=1, text="a"),
                    chat_pb2.PollOption(option_id=2, text="b")])))).message.name
        there = requests(group, message, poll, ben.name)
        nowhere = f"chats/{new_id()}"
        missing = requests(
            nowhere, message.replace(group, nowhere), poll.replace(group, nowhere), ben.name)
        # A new method has its place in one of the lists.
        service = chat_pb2.DESCRIPTOR.services_by_name["ChatService"]
        self.assertEqual({method.name for method in service.methods}, set(there) | WITHOUT_A_CHAT)
        for method in there:
            with self.subTest(method):
                first = self.answer(eve, method, there[method])
                self.assertEqual(first, self.answer(eve, method, missing[method]))
                self.assertEqual(first[0], "refused")
        # They were good requests: a member's are not refused for what they name.
        for method in ("GetChat", "ListMembers", "GetMessage", "VotePoll", "Subscribe"):
            self.assertEqual(self.answer(ben, method, there[method])[0], "done", method)


if __name__ == "__main__":
    unittest.main()

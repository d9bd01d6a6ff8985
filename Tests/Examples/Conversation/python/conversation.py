"""Two people talk; each is this program, or its sibling in another language.

    conversation.py ADDRESS FOLDER HANDLE guest        waits to be spoken to
    conversation.py ADDRESS FOLDER HANDLE host GUEST   begins
    conversation.py ADDRESS FOLDER HANDLE again        comes back later and shows what it holds

FOLDER keeps what outlives the program. `Scripts/examples` runs it all.
"""

import hashlib
import sys
import threading

from messenger import Messenger, new_id
import grpc
from vencejo.chat.v1 import chat_pb2

COUNT = 20
FILE = bytes(range(256)) * 1500


def text_of(me: Messenger, what: str, other: str, text: str) -> tuple:
    """(chat, sequence, name) of the message with a text from somebody else."""
    return me.wait(what, "SELECT chat, sequence, name FROM message WHERE sender = ? AND text = ?",
                   other, text)


def host(me: Messenger, guest_handle: str) -> None:
    profiles = me.call(me.chat.SearchProfiles, chat_pb2.SearchProfilesRequest(query=guest_handle))
    guest = profiles.profiles[0].user
    direct = me.call(me.chat.CreateChat, chat_pb2.CreateChatRequest(
        request_id=new_id(), members=[guest],
        chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_DIRECT))).chat.name
    group = me.call(me.chat.CreateChat, chat_pb2.CreateChatRequest(
        request_id=new_id(), members=[guest],
        chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_GROUP, title="Sunday"))).chat.name

    # Typing is told to who listens now, and to nobody else: the guest says when.
    text_of(me, "the guest's first word", guest, "I am here")
    me.call(me.chat.SendTyping, chat_pb2.SendTypingRequest(
        chat=direct, state=chat_pb2.TYPING_STATE_TYPING))
    text_of(me, "an answer to typing", guest, "you are typing")
    me.send(direct, "hola")
    me.empty_outbox()
    sequence, name = me.wait(
        "the own message", "SELECT sequence, name FROM message WHERE chat = ? AND text = 'hola'",
        direct)
    me.wait("a reaction", "SELECT 1 FROM message WHERE name = ? AND reaction = '👍'", name)
    me.wait("a reply", "SELECT 1 FROM message WHERE reply_to = ? AND text = 'hola, host'", name)
    me.wait("a receipt", "SELECT 1 FROM marker WHERE chat = ? AND user = ? AND read >= ?",
            direct, guest, sequence)
    print("heard reaction, reply and receipt")

    me.call(me.chat.EditMessage, chat_pb2.EditMessageRequest(
        name=name, request_id=new_id(),
        content=chat_pb2.MessageContent(text=chat_pb2.TextContent(text="¡hola!"))))
    me.send(direct, "oops")
    me.empty_outbox()
    slip, = me.wait("the slip", "SELECT sequence FROM message WHERE text = 'oops'")
    text_of(me, "that the slip was seen", guest, "oops?")
    me.call(me.chat.DeleteMessages, chat_pb2.DeleteMessagesRequest(
        parent=direct, request_id=new_id(), scope=chat_pb2.DELETE_SCOPE_FOR_EVERYONE,
        ranges=[chat_pb2.SequenceRange(first_sequence=slip, last_sequence=slip)]))
    text_of(me, "that edit and deletion were seen", guest, "I saw nothing")

    # A file, over a network that goes away in the middle.
    upload = new_id()
    try:
        me.upload(FILE, "numbers.bin", upload, until=len(FILE) // 2)
    except grpc.RpcError:
        pass
    me.send(direct, "numbers", attachment=me.upload(FILE, "numbers.bin", upload))
    me.empty_outbox()
    text_of(me, "the file's digest", guest, "got " + hashlib.sha256(FILE).hexdigest())
    print("the file arrived")

    print("restart the server", flush=True)
    for number in range(1, COUNT + 1):
        me.send(group, f"number {number}")
        me.empty_outbox()
    text_of(me, "the count", guest, f"{COUNT} numbers")
    me.send(direct, "bye")
    me.empty_outbox()
    text_of(me, "good-bye", guest, "bye, host")


def guest(me: Messenger) -> None:
    (user,) = me.rows("SELECT value FROM state WHERE name = 'user'")[0]
    chat, = me.wait("a group", "SELECT chat FROM message WHERE sender = ''")
    with me.changed:
        me.send(chat, "I am here")
    me.empty_outbox()
    with me.changed:
        if not me.changed.wait_for(lambda: me.typing, 60):
            raise TimeoutError("nobody typed")
        (direct, other), = me.typing
    me.send(direct, "you are typing")
    me.empty_outbox()
    _, sequence, name = text_of(me, "a greeting", other, "hola")
    me.call(me.chat.SetReaction, chat_pb2.SetReactionRequest(message=name, emoji="👍"))
    me.call(me.chat.MarkRead, chat_pb2.MarkReadRequest(chat=direct, up_to_sequence=sequence))
    me.send(direct, "hola, host", reply_to=name)
    me.empty_outbox()

    _, slip, _ = text_of(me, "a slip", other, "oops")
    me.send(direct, "oops?")
    me.empty_outbox()
    me.wait("an edit", "SELECT 1 FROM message WHERE name = ? AND text = '¡hola!'", name)
    me.wait("a deletion", "SELECT 1 FROM message WHERE chat = ? AND sequence = ? AND text = ''",
            direct, slip)
    me.send(direct, "I saw nothing")
    me.empty_outbox()

    file, = me.wait("a file", "SELECT attachment FROM message WHERE attachment <> ''")
    data = me.download(file)
    if me.download(file, offset=1000, limit=500) != data[1000:1500]:
        raise ValueError("a range is another")
    me.send(direct, "got " + hashlib.sha256(data).hexdigest())
    me.empty_outbox()

    text_of(me, "the last number", other, f"number {COUNT}")
    numbers = [text for text, in me.rows(
        "SELECT text FROM message WHERE sender = ? AND text LIKE 'number %' ORDER BY sequence",
        other)]
    if numbers != [f"number {number}" for number in range(1, COUNT + 1)]:
        raise ValueError(f"not each number once and in order: {numbers}")
    me.send(direct, f"{COUNT} numbers")
    me.empty_outbox()
    text_of(me, "good-bye", other, "bye")
    me.send(direct, "bye, host")
    me.empty_outbox()
    text_of(me, "the own good-bye", user, "bye, host")
    held = me.rows("SELECT name, text FROM message WHERE chat = ? ORDER BY sequence", direct)
    read = [(m.name, m.content.text.text or m.content.media.caption) for m in me.history(direct)]
    if held != read:
        raise ValueError(f"the cache holds {held}, the server {read}")


def main() -> None:
    address, folder, handle, role, *rest = sys.argv[1:]
    me = Messenger(address, f"{folder}/messenger.sqlite", handle, "correct horse battery staple")
    print("signed in as", me.sign_in(), flush=True)
    threading.Thread(target=me.follow, daemon=True).start()
    if role == "host":
        host(me, rest[0])
    elif role == "guest":
        guest(me)
    else:
        with me.changed:
            if not me.changed.wait_for(lambda: me.caught_up, 60):
                raise TimeoutError("never caught up")
        print("reset" if me.resets else "resumed")
        for row in me.rows("SELECT chat, sequence, text FROM message ORDER BY chat, sequence"):
            print(*row, sep="\t")
    me.over.set()
    if me.stream:
        me.stream.cancel()
    print("done", flush=True)


main()

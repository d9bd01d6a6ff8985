"""The reads of a messenger on a large database, and on a small one beside it: Scripts/bench/chat
million."""

import os
import shutil
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "Tests", "Interop"))
sys.dont_write_bytecode = True

from chat_fixture import GROUP, Fixture

REPEATS = 40


class Caller:
    """A user, with the stubs and their token on every call."""

    def __init__(self, port, token):
        import harness
        from vencejo.chat.v1 import chat_pb2_grpc

        self.channel = harness.channel(f"127.0.0.1:{port}")
        self.chat = chat_pb2_grpc.ChatServiceStub(self.channel)
        self.metadata = (("authorization", f"Bearer {token}"),)

    def call(self, name, request):
        return getattr(self.chat, name)(request, metadata=self.metadata, timeout=60)


def fill(folder, bench, chats, messages, long_messages):
    """A folder, and who is there: one in every chat, one in 100 of them; and an old token."""
    from vencejo.chat.v1 import chat_pb2

    data = bench.fresh(folder)
    fixture = Fixture(data)
    everywhere, token_everywhere = fixture.user("everywhere")
    somewhere, token_somewhere = fixture.user("somewhere")
    others = [fixture.user(f"u{index}")[0] for index in range(200)]
    made, senders = [], {}
    for index in range(chats):
        members = [everywhere, others[index % 200], others[(index + 7) % 200]]
        if index % max(1, chats // 100) == 0:
            members.append(somewhere)
        chat, name = fixture.chat(GROUP, f"chat {index}", members)
        made.append((chat, name))
        senders[chat] = members[:3]
    long, long_name = fixture.chat(GROUP, "the long one", [everywhere, somewhere, others[0]])
    senders[long] = [everywhere, somewhere, others[0]]
    fixture.close()

    server = bench.Server(data)
    old = Caller(server.port, token_everywhere).call(
        "ListEvents", chat_pb2.ListEventsRequest()).resume_token
    server.stop()

    fixture = Fixture(data)
    began = time.monotonic()
    fixture.messages([chat for chat, _ in made], senders, messages)
    fixture.messages([long], senders, long_messages)
    fixture.database.execute("UPDATE member SET read_seq = max(0, (SELECT last_seq FROM chat c "
                             "WHERE c.chat_id = member.chat_id) - 5)")
    count = fixture.database.execute("SELECT count(*) FROM message").fetchone()[0]
    fixture.database.execute("ANALYZE")
    fixture.close()
    size = os.path.getsize(f"{data}/vencejo.sqlite") / 1e6
    print(f"{count} messages in {chats + 1} chats, {size:.0f} MB, "
          f"made in {time.monotonic() - began:.0f} s", flush=True)
    return data, token_everywhere, token_somewhere, old, made[0][1], long_name


def measure(bench, server, name, caller, method, request):
    """CPU of the server for one call, in ms."""
    answer = caller.call(method, request)
    if hasattr(answer, "__next__"):
        raise ValueError(method)
    before = sum(bench.cpu(server.pid))
    began = time.monotonic()
    for _ in range(REPEATS):
        answer = caller.call(method, request)
    wall = (time.monotonic() - began) / REPEATS * 1e3
    used = (sum(bench.cpu(server.pid)) - before) / REPEATS * 1e3
    print(f"  {name:58} {used:7.2f} ms of CPU   {wall:7.2f} ms", flush=True)
    return answer


def subscribe(bench, server, name, caller, token):
    """CPU until CaughtUp."""
    from vencejo.chat.v1 import chat_pb2

    def once():
        frames = 0
        stream = caller.call("Subscribe", chat_pb2.SubscribeRequest(resume_token=token))
        for frame in stream:
            if frame.HasField("caught_up"):
                stream.cancel()
                return frames
            frames += 1
    frames = once()
    before = sum(bench.cpu(server.pid))
    repeats = REPEATS if frames < 1000 else 3
    for _ in range(repeats):
        once()
    used = (sum(bench.cpu(server.pid)) - before) / repeats * 1e3
    print(f"  {name + f', {frames} frames':58} {used:7.2f} ms of CPU", flush=True)


def reads(bench, made):
    from vencejo.chat.v1 import chat_pb2

    data, token_everywhere, token_somewhere, old, first, long = made
    server = bench.Server(data)
    try:
        begin = bench.anonymous(server.pid)
        for who, token in (("in all chats", token_everywhere), ("in 100 chats", token_somewhere)):
            caller = Caller(server.port, token)
            at = lambda name, method, request: measure(
                bench, server, f"{who}: {name}", caller, method, request)
            page = at("chat list, 50", "ListChats", chat_pb2.ListChatsRequest(page_size=50))
            at("chat list, the next page", "ListChats", chat_pb2.ListChatsRequest(
                page_size=50, page_token=page.next_page_token))
            at("history, newest 50", "ListMessages",
               chat_pb2.ListMessagesRequest(parent=first, page_size=50))
            at("history of the long chat, 50 in the middle", "ListMessages",
               chat_pb2.ListMessagesRequest(parent=long, page_size=50, before_sequence=50_000))
            for query in ("bird", "albatross", "alba*", "swift bird", "n12345"):
                found = at(f"search '{query}', 50", "SearchMessages",
                           chat_pb2.SearchMessagesRequest(query=query, page_size=50))
            at("search 'bird' in one chat", "SearchMessages",
               chat_pb2.SearchMessagesRequest(query="bird", page_size=50, chats=[first]))
            at("counts of unread", "GetUnreadSummary", chat_pb2.GetUnreadSummaryRequest())
            page = at("a page of events from the oldest token", "ListEvents",
                      chat_pb2.ListEventsRequest(resume_token=old, page_size=50))
            now = caller.call("ListEvents", chat_pb2.ListEventsRequest()).resume_token
            subscribe(bench, server, f"{who}: a stream from now", caller, now)
        print(f"  memory: {begin:.0f} MiB at first, {bench.anonymous(server.pid):.0f} MiB after all",
              flush=True)
    finally:
        server.stop()


def run(o, home, bench):
    sys.path.insert(0, os.path.join(TOP, "Tests", "Interop"))
    import stubs  # makes the modules above

    for chats, messages, long in ((100, 50, 1000), (o.chats, o.messages or 90, 100_000)):
        made = fill(o.folder, bench, chats, messages, long)
        try:
            reads(bench, made)
        finally:
            shutil.rmtree(made[0])

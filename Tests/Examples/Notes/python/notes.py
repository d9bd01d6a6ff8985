"""The notes app that everybody starts CloudKit with, on RecordService.

    notes.py ADDRESS HANDLE tour     adds, edits, merges a conflict, deletes
    notes.py ADDRESS HANDLE watch    a second device: refreshes when its subscription fires

A note has a title and its content. `Scripts/examples` runs it beside its twin in Swift.
"""

import sys

import grpc
from google.rpc import error_details_pb2

from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc
from vencejo.record.v1 import record_pb2 as pb
from vencejo.record.v1 import record_pb2_grpc

DATABASE = "containers/notes/databases/private"
PASSWORD = "a password for the example"
TIMEOUT = 30


class Notes:
    def __init__(self, address: str, handle: str):
        self.channel = grpc.insecure_channel(address)
        auth = auth_pb2_grpc.AuthServiceStub(self.channel)
        try:
            tokens = auth.SignUp(
                auth_pb2.SignUpRequest(handle=handle, password=PASSWORD), timeout=TIMEOUT).tokens
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.ALREADY_EXISTS:
                raise
            password = auth_pb2.PasswordCredential(identifier=handle, password=PASSWORD)
            tokens = auth.SignIn(
                auth_pb2.SignInRequest(password=password), timeout=TIMEOUT).tokens
        self.metadata = [("authorization", f"Bearer {tokens.access_token}")]
        self.stub = record_pb2_grpc.RecordServiceStub(self.channel)
        self.zone = self.make_zone()

    def call(self, method, request):
        return method(request, metadata=self.metadata, timeout=TIMEOUT)

    def make_zone(self) -> str:
        try:
            return self.call(self.stub.CreateZone, pb.CreateZoneRequest(
                parent=DATABASE, zone_id="Notes")).zone.name
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.ALREADY_EXISTS:
                raise
            return self.call(self.stub.GetZone, pb.GetZoneRequest(
                name=f"{DATABASE}/zones/Notes")).zone.name

    def fetch(self) -> list:
        """All notes, the newest first."""
        notes, token = [], ""
        while True:
            page = self.call(self.stub.QueryRecords, pb.QueryRecordsRequest(
                parent=self.zone, page_token=token, query=pb.Query(
                    record_type="Note",
                    sort=[pb.SortDescriptor(field="___createTime", descending=True)])))
            notes += page.records
            token = page.next_page_token
            if not token:
                return notes

    def modify(self, operations, atomic=None):
        request = pb.ModifyRecordsRequest(parent=DATABASE, operations=operations)
        if atomic is not None:
            request.atomic = atomic
        return self.call(self.stub.ModifyRecords, request).results

    def save(self, record, *keys):
        """One note; the saved one, or a Conflict, or another Failure."""
        result, = self.modify([save(record, *keys)])
        return outcome(result)


class Failure(Exception):
    """An operation of a batch failed; `reason` is CloudKit's word for it."""

    def __init__(self, status):
        super().__init__(status.message)
        self.reason, self.server = "", None
        for detail in status.details:
            info, conflict = error_details_pb2.ErrorInfo(), pb.RecordConflict()
            if detail.Unpack(info):
                self.reason = info.reason
            elif detail.Unpack(conflict):
                self.server = conflict.server_record


def save(record, *keys):
    return pb.RecordOperation(save=pb.SaveOperation(record=record, changed_keys=keys))


def outcome(result):
    if result.HasField("error"):
        raise Failure(result.error)
    return result.record


def note(name: str, title: str, content: str):
    return pb.Record(name=name, record_type="Note", fields={
        "title": pb.Value(string_value=title), "content": pb.Value(string_value=content)})


def text(record, field: str) -> str:
    return record.fields[field].string_value


def merged(ancestor, server, client):
    """What CloudKit asks an app to do with its three records: a field that only one side changed
    is that side's, and one that both changed says so."""
    result = pb.Record()
    result.CopyFrom(server)
    for field in ("title", "content"):
        mine, theirs, before = (text(record, field) for record in (client, server, ancestor))
        if mine != before:
            both = mine if theirs in (before, mine) else f"{theirs} / {mine}"
            result.fields[field].string_value = both
    return result


def show(notes: list) -> None:
    print("notes: " + ", ".join(f"{text(one, 'title')}={text(one, 'content')}" for one in notes),
          flush=True)


def tour(app: Notes) -> None:
    first = app.save(note(f"{app.zone}/records/first", "Shopping", "milk"))
    app.save(note(f"{app.zone}/records/second", "Ideas", "fly"))
    show(app.fetch())

    # Another device is faster: the answer brings its record, and ours is merged into it.
    other = pb.Record()
    other.CopyFrom(first)
    other.fields["content"].string_value = "milk, bread"
    app.save(other, "content")
    mine = pb.Record()
    mine.CopyFrom(first)
    mine.fields["title"].string_value = "To buy"
    mine.fields["content"].string_value = "milk, eggs"
    try:
        app.save(mine, "title", "content")
        raise SystemExit("two devices wrote, and none of them heard of it")
    except Failure as failure:
        print(f"conflict: {failure.reason}", flush=True)
        saved = app.save(merged(first, failure.server, mine))
        print(f"merged: {text(saved, 'title')}={text(saved, 'content')}", flush=True)

    # Errors come for each record. In a zone of one's own the innocent ones wait for the guilty.
    batch = [save(note(f"{app.zone}/records/third", "Third", "kept")), save(first)]
    for atomic in (True, False):
        reasons = []
        for result in app.modify(batch, atomic):
            try:
                outcome(result)
                reasons.append("saved")
            except Failure as failure:
                reasons.append(failure.reason)
        print(f"batch: {' '.join(reasons)}", flush=True)
    app.modify([pb.RecordOperation(
        delete=pb.DeleteOperation(name=f"{app.zone}/records/second"))])
    app.save(note(f"{app.zone}/records/last", "Done", "!"))
    show(app.fetch())


def watch(app: Notes) -> None:
    """Refreshes whenever the saved subscription fires, until a note says Done."""
    subscription = app.call(app.stub.CreateSubscription, pb.CreateSubscriptionRequest(
        parent=DATABASE, subscription_id="notes", subscription=pb.Subscription(
            query=pb.QuerySubscription(
                query=pb.Query(record_type="Note"),
                fires_on=[pb.FIRES_ON_CREATION, pb.FIRES_ON_UPDATE, pb.FIRES_ON_DELETION]),
            notification_info=pb.NotificationInfo(title="{title}", increments_badge=True)),
    )).subscription
    # What fired while this device was away; the stream goes on after that.
    missed = app.call(app.stub.ListFirings, pb.ListFiringsRequest(
        parent=subscription.name, page_size=1000))
    print(f"missed: {len(missed.firings)}, badge {missed.badge}", flush=True)
    app.call(app.stub.AcknowledgeFirings, pb.AcknowledgeFiringsRequest(
        parent=subscription.name, change_token=missed.change_token))
    call = app.stub.Subscribe(pb.SubscribeRequest(
        parent=DATABASE, resume_token=missed.change_token,
        targets=[pb.SubscribeTarget(target_id=1, subscription=subscription.name)]),
        metadata=app.metadata, timeout=4 * TIMEOUT)
    notes = app.fetch()
    print("watching", flush=True)
    for frame in call:
        if frame.WhichOneof("event") != "firing":
            continue
        if any(text(one, "title") == "Done" for one in notes):
            break
        notes = app.fetch()
        if any(text(one, "title") == "Done" for one in notes):
            break
    call.cancel()
    show(notes)


if __name__ == "__main__":
    {"tour": tour, "watch": watch}[sys.argv[3]](Notes(sys.argv[1], sys.argv[2]))

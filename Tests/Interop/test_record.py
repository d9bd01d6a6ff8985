"""Zones, records, queries, changes and the stream of them."""

import unittest

import grpc

from base import ServerCase
from harness import new_id
from vencejo.record.v1 import record_pb2 as pb

Code = grpc.StatusCode
INT = lambda number: pb.Value(int64_value=number)
TEXT = lambda text: pb.Value(string_value=text)


class Records(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import harness

        # An administrator: containers are made on their first use.
        cls.ana = harness.Person(cls.server.address, "ana")
        cls.addClassCleanup(cls.ana.close)

    def setUp(self):
        self.database = f"containers/notes{new_id()[-6:]}/databases/private"
        self.zone = self.ana.call(self.ana.record.CreateZone, pb.CreateZoneRequest(
            parent=self.database, zone_id="work")).zone
        self.rpc = self.ana.record

    # Verbs.

    def name(self, record: str) -> str:
        return f"{self.zone.name}/records/{record}"

    def note(self, record: str, tag: str = "", **fields) -> pb.Record:
        return pb.Record(name=self.name(record), record_type="Note", fields=fields, change_tag=tag)

    def modify(self, *operations, **options) -> pb.ModifyRecordsResponse:
        return self.ana.call(self.rpc.ModifyRecords, pb.ModifyRecordsRequest(
            parent=self.database, operations=operations, **options))

    def save(self, *records, **options) -> pb.ModifyRecordsResponse:
        return self.modify(*(save_of(record) for record in records), **options)

    def query(self, page_size: int = 0, page_token: str = "", **query) -> pb.QueryRecordsResponse:
        return self.ana.call(self.rpc.QueryRecords, pb.QueryRecordsRequest(
            parent=self.zone.name, query=pb.Query(record_type="Note", **query),
            page_size=page_size, page_token=page_token))

    def five(self):
        """n0 … n4 with n = 3, 1, 4, 1, 5 and titles in order."""
        self.save(*(self.note(f"n{i}", n=INT(n), title=TEXT(f"title {i}"))
                    for i, n in enumerate((3, 1, 4, 1, 5))))

    def names(self, records) -> list:
        return [record.name.rsplit("/", 1)[1] for record in records]

    # Zones.

    def test_zones(self):
        self.assertRegex(self.zone.name, r"^containers/[^/]+/databases/u-[^/]+/zones/work$")
        self.assertEqual(self.zone.owner, self.ana.name)
        self.assertTrue(self.zone.capabilities.atomic and self.zone.capabilities.fetch_changes)
        listed = self.ana.call(self.rpc.ListZones, pb.ListZonesRequest(parent=self.database)).zones
        self.assertIn(self.zone.name, [zone.name for zone in listed])
        self.save(self.note("a", n=INT(1)))
        self.ana.call(self.rpc.DeleteZone, pb.DeleteZoneRequest(name=self.zone.name))
        self.fails(lambda: self.ana.call(self.rpc.GetZone, pb.GetZoneRequest(name=self.zone.name)),
                   Code.NOT_FOUND, "ZONE_NOT_FOUND", "record")

    # Saving.

    def test_save_get_delete(self):
        fields = {
            "text": TEXT("ñandú 燕"), "whole": INT(-(2**63)), "real": pb.Value(double_value=2.5),
            "raw": pb.Value(bytes_value=bytes(range(256))),
            "place": pb.Value(location_value=pb.Location(latitude_degrees=41.4, longitude_degrees=2.2)),
            "link": pb.Value(reference_value=pb.Reference(record=self.name("other"))),
            "list": pb.Value(list_value=pb.ListValue(values=[INT(1), INT(2)])),
        }
        fields["time"] = pb.Value()
        fields["time"].timestamp_value.FromJsonString("2026-11-30T08:15:00.123456Z")
        result = self.save(self.note("a", **fields))
        self.assertTrue(result.complete)
        saved = result.results[0].record
        self.assertTrue(saved.change_tag)
        self.assertEqual(saved.creator, self.ana.name)
        self.assertEqual(dict(saved.fields), fields)
        got = self.ana.call(self.rpc.GetRecord, pb.GetRecordRequest(name=self.name("a"))).record
        self.assertEqual(got, saved)

        deleted = self.modify(pb.RecordOperation(delete=pb.DeleteOperation(name=got.name)))
        self.assertEqual(deleted.results[0].deleted.name, got.name)
        self.fails(lambda: self.ana.call(self.rpc.GetRecord, pb.GetRecordRequest(name=got.name)),
                   Code.NOT_FOUND, "RECORD_NOT_FOUND", "record")

    def test_policies(self):
        first = self.save(self.note("a", x=INT(1), y=INT(1))).results[0].record
        second = self.save(self.note("a", tag=first.change_tag, x=INT(2))).results[0].record
        self.assertNotEqual(second.change_tag, first.change_tag)
        # An old tag: the stored record comes back with the error.
        stale = self.save(self.note("a", tag=first.change_tag, x=INT(3)), atomic=False)
        self.assertFalse(stale.complete)
        reason, conflict = item_error(stale.results[0].error)
        self.assertEqual((stale.results[0].error.code, reason), (Code.ABORTED.value[0], "RECORD_CHANGED"))
        self.assertEqual(conflict.server_record.change_tag, second.change_tag)
        # No tag: it must not exist.
        again = self.save(self.note("a", x=INT(3)), atomic=False)
        self.assertEqual(item_error(again.results[0].error)[0], "RECORD_CHANGED")

        kept = self.save(self.note("a", x=INT(4)), save_policy=pb.SAVE_POLICY_ALL_KEYS)
        self.assertEqual(keys(kept.results[0].record), {"x": 4, "y": 1})
        exact = self.save(self.note("a", z=INT(5)), save_policy=pb.SAVE_POLICY_REPLACE)
        self.assertEqual(keys(exact.results[0].record), {"z": 5})

    def test_atomic_batch(self):
        self.save(self.note("taken", n=INT(1)))
        result = self.save(self.note("new", n=INT(1)), self.note("taken", n=INT(2)), atomic=True)
        self.assertFalse(result.complete)
        reasons = [item_error(item.error)[0] for item in result.results]
        self.assertEqual(reasons, ["BATCH_ABORTED", "RECORD_CHANGED"])
        self.assertEqual(self.names(self.query().records), ["taken"])
        result = self.save(self.note("new", n=INT(1)), self.note("taken", n=INT(2)), atomic=False)
        self.assertEqual(result.results[0].record.name, self.name("new"))

    def test_modify_is_idempotent_across_a_kill(self):
        request = new_id()
        first = self.save(self.note("a", n=INT(1)), request_id=request)
        self.server.kill()
        self.server.start()
        second = self.ana.call(self.rpc.ModifyRecords, pb.ModifyRecordsRequest(
            parent=self.database, operations=[save_of(self.note("a", n=INT(1)))],
            request_id=request), wait_for_ready=True)
        self.assertTrue(second.complete)
        self.assertEqual(second.results[0].record.change_tag, first.results[0].record.change_tag)
        self.fails(lambda: self.save(self.note("b", n=INT(1)), request_id=request),
                   Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED", "record")

    def test_lookup_tells_each(self):
        self.five()
        found = self.ana.call(self.rpc.LookupRecords, pb.LookupRecordsRequest(
            parent=self.database, names=[self.name("n1"), self.name("none"), self.name("n0")],
            desired_keys=pb.FieldSelection(fields=["n"])))
        self.assertEqual(keys(found.results[0].record), {"n": 1})
        self.assertEqual(item_error(found.results[1].error)[0], "RECORD_NOT_FOUND")
        self.assertEqual(keys(found.results[2].record), {"n": 3})

    # Queries.

    def test_sorted_with_predicates(self):
        self.five()
        by_n = [pb.SortDescriptor(field="n", descending=True)]
        compare = lambda comparator, n: pb.Predicate(comparison=pb.Comparison(
            field="n", comparator=comparator, value=INT(n)))
        found = lambda predicate: self.names(self.query(predicate=predicate, sort=by_n).records)
        self.assertEqual(self.names(self.query(sort=by_n).records), ["n4", "n2", "n0", "n3", "n1"])
        self.assertEqual(found(compare(pb.COMPARATOR_GREATER_THAN, 3)), ["n4", "n2"])
        self.assertEqual(found(compare(pb.COMPARATOR_EQUAL, 1)), ["n3", "n1"])
        self.assertEqual(found(pb.Predicate(any_of=pb.Compound(predicates=[
            compare(pb.COMPARATOR_EQUAL, 5), compare(pb.COMPARATOR_EQUAL, 3)]))), ["n4", "n0"])
        self.assertEqual(found(pb.Predicate(**{"not": compare(pb.COMPARATOR_LESS_THAN, 4)})),
                         ["n4", "n2"])
        self.assertEqual(found(pb.Predicate(**{"in": pb.Membership(
            field="n", values=[INT(4), INT(1)])})), ["n2", "n3", "n1"])
        self.assertEqual(found(pb.Predicate(begins_with=pb.StringMatch(
            field="title", prefix="title 2"))), ["n2"])

    def test_pages_do_not_shift(self):
        self.five()
        sort = [pb.SortDescriptor(field="n")]
        first = self.query(page_size=2, sort=sort)
        self.assertEqual(self.names(first.records), ["n1", "n3"])
        # Something new before the cursor changes nothing after it.
        self.save(self.note("early", n=INT(0)))
        second = self.query(page_size=2, page_token=first.next_page_token, sort=sort)
        self.assertEqual(self.names(second.records), ["n0", "n2"])
        self.fails(lambda: self.query(page_size=2, page_token=first.next_page_token),
                   Code.INVALID_ARGUMENT, service="record")

    # Changes.

    def changes(self, token: str = "", page_size: int = 0):
        seen = {}
        while True:
            page = self.ana.call(self.rpc.FetchZoneChanges, pb.FetchZoneChangesRequest(
                parent=self.zone.name, change_token=token, page_size=page_size))
            for change in page.changes:
                if change.HasField("changed"):
                    seen[change.changed.name.rsplit("/", 1)[1]] = keys(change.changed).get("n")
                else:
                    seen[change.deleted.name.rsplit("/", 1)[1]] = "deleted"
            token = page.change_token
            if not page.more_coming:
                return seen, token

    def test_changes_since_a_token(self):
        self.five()
        seen, token = self.changes(page_size=2)
        self.assertEqual(seen, {"n0": 3, "n1": 1, "n2": 4, "n3": 1, "n4": 5})
        self.assertEqual(self.changes(token)[0], {})
        self.save(self.note("n1", n=INT(9)), save_policy=pb.SAVE_POLICY_CHANGED_KEYS)
        self.modify(pb.RecordOperation(delete=pb.DeleteOperation(name=self.name("n2"))))
        seen, token = self.changes(token)
        self.assertEqual(seen, {"n1": 9, "n2": "deleted"})
        self.fails(lambda: self.changes("forged"), Code.INVALID_ARGUMENT, service="record")

    # The stream.

    def subscribe(self, **options):
        targets = options.pop("targets", None) or [pb.SubscribeTarget(target_id=1, zone=self.zone.name)]
        return self.ana.stream(self.rpc.Subscribe, pb.SubscribeRequest(
            parent=self.database, targets=targets, **options))

    def test_stream_of_a_zone_resumes_across_a_kill(self):
        self.five()
        stream = self.subscribe(include_snapshot=True)
        frames = until(stream, "caught_up")
        self.assertEqual(len([f for f in frames if f.HasField("record_matched")]), 5)
        self.save(self.note("live", n=INT(1)))
        frames = until(stream, "record_matched")
        self.assertEqual(frames[-1].record_matched.record.name, self.name("live"))
        token = frames[-1].resume_token
        self.assertTrue(token)
        stream.cancel()

        self.modify(pb.RecordOperation(delete=pb.DeleteOperation(name=self.name("n0"))))
        self.server.kill()
        self.server.start()
        stream = self.subscribe(resume_token=token)
        frames = until(stream, "caught_up")
        events = [frame.WhichOneof("event") for frame in frames]
        self.assertEqual(events, ["record_deleted", "caught_up"])
        self.assertEqual(frames[0].record_deleted.record.name, self.name("n0"))
        stream.cancel()

    def test_stream_of_a_query(self):
        big = pb.Query(record_type="Note", predicate=pb.Predicate(comparison=pb.Comparison(
            field="n", comparator=pb.COMPARATOR_GREATER_THAN, value=INT(10))))
        stream = self.subscribe(targets=[pb.SubscribeTarget(target_id=7, query=big)])
        until(stream, "caught_up")
        write = lambda n: self.save(
            self.note("a", n=INT(n)), save_policy=pb.SAVE_POLICY_CHANGED_KEYS)
        write(5)
        write(11)
        frame = until(stream, "record_matched")[-1]
        self.assertEqual((list(frame.target_ids), keys(frame.record_matched.record)), ([7], {"n": 11}))
        write(12)
        self.assertEqual(keys(until(stream, "record_matched")[-1].record_matched.record), {"n": 12})
        write(6)
        self.assertEqual(until(stream, "record_unmatched")[-1].record_unmatched.name, self.name("a"))
        stream.cancel()

    # Who may what, and how much.

    def test_private_means_private(self):
        self.five()
        eve = self.person("eve-" + new_id()[-6:])
        for call in (
            lambda: eve.call(eve.record.GetRecord, pb.GetRecordRequest(name=self.name("n0"))),
            lambda: eve.call(eve.record.QueryRecords, pb.QueryRecordsRequest(
                parent=self.zone.name, query=pb.Query(record_type="Note"))),
            lambda: eve.call(eve.record.FetchZoneChanges, pb.FetchZoneChangesRequest(
                parent=self.zone.name)),
        ):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertIn(caught.exception.code(), (Code.NOT_FOUND, Code.PERMISSION_DENIED))

    def test_one_record_too_large(self):
        raw = pb.Value(bytes_value=bytes(1 << 20))
        result = self.save(self.note("big", raw=raw), self.note("small", n=INT(1)), atomic=False)
        self.assertEqual(item_error(result.results[0].error)[0], "LIMIT_EXCEEDED")
        self.assertEqual(self.names(self.query().records), ["small"])

    def test_three_megabytes_come_back(self):
        raw = bytes(range(256)) * 3900
        for number in range(3):
            self.save(self.note(f"big{number}", raw=pb.Value(bytes_value=raw)))
        found = self.ana.call(self.rpc.LookupRecords, pb.LookupRecordsRequest(
            parent=self.database, names=[self.name(f"big{i}") for i in range(3)]))
        self.assertEqual([item.record.fields["raw"].bytes_value == raw for item in found.results],
                         [True] * 3)

    def test_too_much_at_once(self):
        note = lambda number, size: self.note(
            f"big{number}", raw=pb.Value(bytes_value=bytes(size)))
        # 3 MiB reach the service, which allows 2; 5 MiB do not reach it.
        self.fails(lambda: self.save(*(note(i, 1 << 20) for i in range(3))),
                   Code.INVALID_ARGUMENT, "LIMIT_EXCEEDED", "record")
        with self.assertRaises(grpc.RpcError) as caught:
            self.save(*(note(i, 1 << 20) for i in range(5)))
        self.assertEqual(caught.exception.code(), Code.RESOURCE_EXHAUSTED)
        self.assertEqual(self.query().records, [])
        self.fails(lambda: self.save(*(self.note(f"n{i}", n=INT(i)) for i in range(401))),
                   Code.INVALID_ARGUMENT, "LIMIT_EXCEEDED", "record")


def save_of(record) -> pb.RecordOperation:
    return pb.RecordOperation(save=pb.SaveOperation(record=record))


def keys(record) -> dict:
    return {key: value.int64_value for key, value in record.fields.items()
            if value.HasField("int64_value")}


def item_error(status):
    """(reason, conflict or None) of an ItemStatus."""
    from google.rpc import error_details_pb2

    info, conflict, found = error_details_pb2.ErrorInfo(), pb.RecordConflict(), None
    for detail in status.details:
        detail.Unpack(info)
        if detail.Unpack(conflict):
            found = conflict
    return info.reason, found


def until(stream, event: str) -> list:
    """Frames up to and with the first of this kind; heartbeats left out."""
    frames = []
    for frame in stream:
        if not frame.HasField("heartbeat"):
            frames.append(frame)
        if frame.HasField(event):
            return frames
    raise AssertionError(f"the stream ended before {event}: {frames}")


if __name__ == "__main__":
    unittest.main()

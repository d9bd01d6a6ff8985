"""What records cost in a release build: Scripts/bench/records runs it.

    import    the time of `vencejo admin import-records` beside sqlite3's .import of the same file
    million   a table of many records with 20 fields: reads, queries, feeds, saves
    saves     acknowledged saves a second with 10,000 live queries over 1,000 streams

CPU is utime + stime of /proc/PID/stat, of the server alone. Rows are what QueryRecords explains.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import grpc
import grpc.aio

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TICK = os.sysconf("SC_CLK_TCK")
PROGRAM = os.environ.get("VENCEJO_PROGRAM", os.path.join(TOP, ".build", "release", "vencejo"))


def stubs(folder):
    """Modules of Protos/, made by protoc."""
    protos = os.path.join(TOP, "Protos")
    files = [f"vencejo/{name}/v1/{name}.proto" for name in ("auth", "record")]
    subprocess.run([sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", f"-I{protos}",
                    f"--python_out={folder}", f"--grpc_python_out={folder}", *files], check=True)
    sys.path.insert(0, folder)
    from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc
    from vencejo.record.v1 import record_pb2, record_pb2_grpc
    return auth_pb2, auth_pb2_grpc, record_pb2, record_pb2_grpc


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Server:
    def __init__(self, data):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", data, "--open-sign-up"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            sys.exit(f"{PROGRAM} does not serve")
        self.address = "127.0.0.1:" + line.strip().rsplit(":", 1)[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def rows_file(path, count):
    """Half numbers, half short texts of 5,000 values."""
    random.seed(1)
    with open(path, "w") as f:
        f.write(",".join(f"f{i}" for i in range(20)) + "\n")
        for row in range(count):
            f.write(",".join(
                str((row * 7919 + i) % 1_000_003) if i % 2 == 0
                else f"value {random.randrange(5000)} {i}" for i in range(20)) + "\n")


def timed(*command):
    """(seconds, seconds of processors)"""
    before, start = os.times(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (time.monotonic() - start, after.children_user + after.children_system
            - before.children_user - before.children_system)


def import_rows(o, home):
    path = os.path.join(home, "rows.csv")
    rows_file(path, o.rows)
    data, ratios, indexed = os.path.join(home, "data"), [], []
    plain = os.path.join(home, "plain.db")
    columns = [f"f{i}" for i in range(20)]
    table = ("create table rows(" + ", ".join(
        f"{column} {'integer' if i % 2 == 0 else 'text'}" for i, column in enumerate(columns))
        + ");" + "".join(f"create index by_{column} on rows({column});" for column in columns))

    def fresh():
        if os.path.exists(plain):
            os.unlink(plain)

    for _ in range(o.rounds):
        shutil.rmtree(data, ignore_errors=True)
        fresh()
        theirs, their_cpu = timed("sqlite3", plain, ".mode csv", f".import {path} rows")
        ours, our_cpu = timed(PROGRAM, "admin", "import-records", path, "--container", "bench",
                              "--type", "Row", "--yes", "--data", data)
        ratios.append(theirs / ours)
        print(f"sqlite3 {theirs:.2f} s ({their_cpu:.2f} s of processors), vencejo {ours:.2f} s "
              f"({our_cpu:.2f} s): {theirs / ours:.2f} of its speed", flush=True)
        took, used = timed(PROGRAM, "admin", "index-records", "--data", data)
        fresh()
        theirs, their_cpu = timed("sqlite3", plain, table, ".mode csv",
                                  f".import --skip 1 {path} rows")
        indexed.append(theirs / (ours + took))
        print(f"  with 20 indexes: sqlite3 {theirs:.2f} s ({their_cpu:.2f} s), vencejo "
              f"{ours + took:.2f} s, {took:.2f} s of it indexing ({used:.2f} s): "
              f"{theirs / (ours + took):.2f} of its speed", flush=True)
    print(f"median {statistics.median(ratios):.2f} of sqlite3's speed, "
          f"{statistics.median(indexed):.2f} where both index every field")


def million(o, home):
    auth_pb2, auth_grpc, pb, record_grpc = stubs(home)
    data = os.path.join(home, "data")
    sizes = [o.records // 10, o.records]
    for size in sizes:
        shutil.rmtree(data, ignore_errors=True)
        path = os.path.join(home, "rows.csv")
        rows_file(path, size)
        server = Server(data)
        channel = grpc.insecure_channel(server.address)
        auth = auth_grpc.AuthServiceStub(channel)
        token = auth.SignUp(auth_pb2.SignUpRequest(
            handle="ana", password="password")).tokens.access_token
        meta = (("authorization", f"Bearer {token}"),)
        channel.close()
        server.stop()
        took, used = timed(PROGRAM, "admin", "import-records", path, "--container", "bench",
                           "--database", "ana", "--records", "z", "--type", "Row", "--yes",
                           "--data", data)
        print(f"{size} records: imported in {took:.1f} s ({used:.1f} s of processors)", flush=True)
        took, used = timed(PROGRAM, "admin", "index-records", "--data", data)
        print(f"{size} records: indexed in {took:.1f} s ({used:.1f} s of processors)", flush=True)
        server = Server(data)
        channel = grpc.insecure_channel(server.address)
        records = record_grpc.RecordServiceStub(channel)
        zone = "containers/bench/databases/private/zones/z"

        def tell(what, count, body):
            before = cpu(server.pid)
            for index in range(count):
                body(index)
            used = (cpu(server.pid) - before) / count * 1e6
            print(f"{size} records, {what}: {used:.0f} us of the server's processor time",
                  flush=True)

        names, token = [], ""
        for _ in range(5):
            page = records.QueryRecords(pb.QueryRecordsRequest(
                parent=zone, query=pb.Query(record_type="Row"), page_size=1000, page_token=token,
                desired_keys=pb.FieldSelection()), metadata=meta)
            names += [record.name for record in page.records]
            token = page.next_page_token
        tell("a point read", 2000, lambda index: records.GetRecord(
            pb.GetRecordRequest(name=names[index * 7919 % len(names)]), metadata=meta))

        for what, text, sort in [
                ("equality", 'f1 = "value 7 1"', []),
                ("a range with its sort", "f0 > 500000", [pb.SortDescriptor(field="f0")]),
                ("a sort alone", "", [pb.SortDescriptor(field="f4", descending=True)]),
                ("a word", 'search("4321", f3)', [])]:
            state = {"token": "", "rows": 0}

            def page(index, explain=False):
                answer = records.QueryRecords(pb.QueryRecordsRequest(
                    parent=zone, query=pb.Query(record_type="Row", filter=text, sort=sort),
                    page_size=100, page_token=state["token"], explain=explain), metadata=meta)
                if answer.next_page_token:
                    state["token"] = answer.next_page_token
                return answer

            if text == "":
                def page(index, explain=False):
                    answer = records.QueryRecords(pb.QueryRecordsRequest(
                        parent=zone, query=pb.Query(record_type="Row", sort=sort), page_size=100,
                        page_token=state["token"], explain=explain), metadata=meta)
                    if answer.next_page_token:
                        state["token"] = answer.next_page_token
                    return answer
            tell(f"a page of 100 by {what}, from a cursor", 100, page)
            answer = page(0, True)
            print(f"  {answer.explanation.rows_read} rows read for {len(answer.records)} records")

        half = records.FetchZoneChanges(pb.FetchZoneChangesRequest(
            parent=zone, page_size=1000, desired_keys=pb.FieldSelection()), metadata=meta)
        for _ in range(size // 2000 - 1):
            half = records.FetchZoneChanges(pb.FetchZoneChangesRequest(
                parent=zone, change_token=half.change_token, page_size=1000,
                desired_keys=pb.FieldSelection()), metadata=meta)
        tell("a page of 100 changes from the middle", 100, lambda index: records.FetchZoneChanges(
            pb.FetchZoneChangesRequest(parent=zone, change_token=half.change_token, page_size=100),
            metadata=meta))

        def save(index):
            operations = []
            for number in range(400):
                record = pb.Record(name=f"{zone}/records/new{index}-{number}", record_type="Row")
                for field in range(20):
                    if field % 2 == 0:
                        record.fields[f"f{field}"].int64_value = number
                    else:
                        record.fields[f"f{field}"].string_value = f"new {number} {field}"
                operations.append(pb.RecordOperation(save=pb.SaveOperation(record=record)))
            answer = records.ModifyRecords(pb.ModifyRecordsRequest(
                parent="containers/bench/databases/private", operations=operations,
                desired_keys=pb.FieldSelection()), metadata=meta)
            assert answer.complete
        tell("a batch of 400 saves", 5, save)
        channel.close()
        server.stop()


async def live_saves(o, home):
    auth_pb2, auth_grpc, pb, record_grpc = stubs(home)
    server = Server(os.path.join(home, "data"))
    channel = grpc.aio.insecure_channel(server.address)
    auth = auth_grpc.AuthServiceStub(channel)
    writers = []
    for number in range(8):
        answer = await auth.SignUp(auth_pb2.SignUpRequest(
            handle=f"writer{number}", password="password"))
        writers.append((("authorization", f"Bearer {answer.tokens.access_token}"),))
    public = "containers/bench/databases/public"
    stub = record_grpc.RecordServiceStub(channel)

    def operation(name, owner):
        record = pb.Record(name=f"{public}/zones/_defaultZone/records/{name}", record_type="Note")
        record.fields["owner"].string_value = owner
        record.fields["n"].int64_value = 1
        return pb.ModifyRecordsRequest(parent=public, operations=[pb.RecordOperation(
            save=pb.SaveOperation(record=record, save_policy=pb.SAVE_POLICY_REPLACE))])

    await stub.ModifyRecords(operation("first", "nobody"), metadata=writers[0])
    told = 0
    ready = asyncio.Semaphore(0)

    async def follow(stub, meta, stream):
        nonlocal told
        targets = [pb.SubscribeTarget(target_id=number + 1, query=pb.Query(
            record_type="Note", filter=f'owner = "user{stream * 10 + number}"'))
            for number in range(10)]
        async for frame in stub.Subscribe(pb.SubscribeRequest(parent=public, targets=targets),
                                          metadata=meta):
            if frame.WhichOneof("event") == "caught_up":
                ready.release()
            elif frame.WhichOneof("event") == "record_matched":
                told += 1

    channels, tasks = [], []
    for session in range(o.streams // 8):
        if session % 10 == 0:
            channels.append(grpc.aio.insecure_channel(
                server.address, options=[("grpc.use_local_subchannel_pool", 1)]))
        answer = await auth.SignIn(auth_pb2.SignInRequest(
            password=auth_pb2.PasswordCredential(
                identifier=f"writer{session % 8}", password="password")))
        meta = (("authorization", f"Bearer {answer.tokens.access_token}"),)
        other = record_grpc.RecordServiceStub(channels[-1])
        tasks += [asyncio.create_task(follow(other, meta, session * 8 + number))
                  for number in range(8)]
    for _ in tasks:
        await ready.acquire()
    used, start, done = cpu(server.pid), time.monotonic(), 0
    latencies = []

    async def write(caller):
        nonlocal done
        while done < o.calls:
            done += 1
            begun = time.monotonic()
            answer = await stub.ModifyRecords(
                operation(f"r{caller}", f"user{done % 10_000}"), metadata=writers[caller % 8])
            assert answer.complete, answer
            latencies.append(time.monotonic() - begun)

    await asyncio.gather(*(write(caller) for caller in range(64)))
    took, used = time.monotonic() - start, cpu(server.pid) - used
    latencies.sort()
    print(f"{len(tasks)} streams with {10 * len(tasks)} queries: {len(latencies)} acknowledged "
          f"saves in {took:.2f} s, {len(latencies) / took:.0f} a second; "
          f"{used / len(latencies) * 1e6:.0f} us of the server's processor time each, median "
          f"{latencies[len(latencies) // 2] * 1e3:.1f} ms; {told} matches told")
    for task in tasks:
        task.cancel()
    server.stop()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("import")
    command.add_argument("--rows", type=int, default=100_000)
    command.add_argument("--rounds", type=int, default=3)
    command = commands.add_parser("million")
    command.add_argument("--records", type=int, default=1_000_000)
    command = commands.add_parser("saves")
    command.add_argument("--streams", type=int, default=1_000)
    command.add_argument("--calls", type=int, default=20_000)
    for each in commands.choices.values():
        each.add_argument("--folder", default=None, help="on the disk to be measured")
    o = parser.parse_args()
    home = tempfile.mkdtemp(prefix="records-bench-", dir=o.folder)
    try:
        if o.command == "import":
            import_rows(o, home)
        elif o.command == "million":
            million(o, home)
        else:
            asyncio.run(live_saves(o, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

import TestSupport
import Testing
import VencejoAPI
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoServer

@testable import VencejoClient

/// Two devices change one record.
@Suite(.timeLimit(.minutes(1))) struct RecordConflictTests {
  private static func note(_ fields: [String: String]) -> Record.Record {
    var record = Record.Record(recordType: "Note")
    record.fields = fields.mapValues { .init(kind: .stringValue($0)) }
    return record
  }

  private static func text(_ record: Record.Record) -> [String: String] {
    record.fields.compactMapValues { value in
      if case .stringValue(let text)? = value.kind { text } else { nil }
    }
  }

  /// A field that only one side changed is that side's (CKRecordChangedError's three records).
  @Test func threeVersionsBecomeOne() {
    let conflict = RecordConflict(
      ancestor: Self.note(["same": "a", "ours": "a", "theirs": "a", "both": "a", "gone": "a"]),
      server: Self.note(["same": "a", "ours": "a", "theirs": "b", "both": "b", "gone": "a"]),
      client: Self.note(["same": "a", "ours": "c", "theirs": "a", "both": "c", "new": "c"]))
    #expect(conflict.fields == ["both"])
    var asked: [String] = []
    let merged = conflict.merged { field, server, client in
      asked.append(field)
      #expect(server == .init(kind: .stringValue("b")))
      return client
    }
    #expect(asked == ["both"])
    #expect(
      Self.text(merged) == ["same": "a", "ours": "c", "theirs": "b", "both": "c", "new": "c"])
    // What both changed to the same is no conflict.
    var agreed = conflict
    agreed.client.fields["both"] = agreed.server.fields["both"]
    #expect(agreed.fields.isEmpty)
    // Without an ancestor nobody can tell who changed what.
    var unknown = conflict
    unknown.ancestor = nil
    #expect(unknown.fields == ["both", "gone", "new", "ours", "theirs"])
    #expect(Self.text(unknown.merged { _, server, _ in server }) == Self.text(conflict.server))
  }

  @Test func aSaveIsResolvedUntilItMeetsNobody() async throws {
    let folder = try TemporaryFolder("device")
    let backend = try Backend(configuration: .init(directory: folder.path))
    defer { backend.close() }
    let server = try Server(
      listening: [SocketAddress(parsing: "127.0.0.1:0")], services: backend.services)
    let client = try VencejoClient("\(server.addresses[0])")
    defer { client.close() }
    try await client.signUp(handle: "ana", password: "correct-horse-battery")
    let database = client.database(of: "notes")
    try await database.createZone("work")

    var first = Self.note(["title": "milk", "text": "two", "old": "x"])
    first.name = database.recordName("n", in: "work")
    let read = try await database.save(first, policy: .ifServerRecordUnchanged)
    // Another device changes the title, and once more while the first conflict is resolved.
    var theirs = read
    theirs.fields["title"] = .init(kind: .stringValue("bread"))
    let second = try await database.save(theirs, policy: .ifServerRecordUnchanged)
    #expect(second.changeTag != read.changeTag)
    var ours = read
    ours.fields["text"] = .init(kind: .stringValue("three"))
    ours.fields["old"] = nil
    var conflicts: [[String]] = []
    let saved = try await database.save(ours, ancestor: read) { conflict in
      #expect(Self.text(conflict.server)["title"] == "bread")
      conflicts.append(conflict.fields)
      return conflict.merged { _, server, _ in server }
    }
    #expect(conflicts == [[]])
    #expect(Self.text(saved) == ["title": "bread", "text": "three"])
    let stored = try await database.record(first.name)
    #expect(Self.text(stored) == ["title": "bread", "text": "three"])

    // The server's version is good enough, or there is nothing to save.
    var late = read
    late.fields["title"] = .init(kind: .stringValue("eggs"))
    let left = try await database.save(late, ancestor: read) { conflict in
      #expect(conflict.fields == ["title"])
      return nil
    }
    #expect(left.changeTag == stored.changeTag)
    let same = try await database.save(stored, ancestor: stored) { _ in nil }
    #expect(same.changeTag == stored.changeTag)
    // Another error is not for the resolver.
    var wrong = stored
    wrong.fields["text"] = .init(kind: .int64Value(1))
    let error = await #expect(throws: RPCError.self) {
      _ = try await database.save(wrong, ancestor: stored) { _ in
        Issue.record("asked")
        return nil
      }
    }
    #expect(error?.code == .failedPrecondition)
    await server.shutdown()
  }
}

// The notes app that everybody starts CloudKit with, on RecordService.
//
//     notes ADDRESS HANDLE tour     adds, edits, merges a conflict, deletes
//     notes ADDRESS HANDLE watch    a second device: refreshes when its subscription fires
//
// A note has a title and its content. `Scripts/examples` runs it beside its twin in Python.

import Glibc
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

let database = "containers/notes/databases/private"

/// An operation of a batch failed; `reason` is CloudKit's word for it.
struct Failure: Error {
  var reason = ""
  var server: Record.Record?

  init(_ status: Record.ItemStatus) throws {
    for detail in status.details {
      switch detail.typeName {
      case "google.rpc.ErrorInfo":
        reason = try GoogleRPC.ErrorInfo(serializedBytes: detail.value).reason
      case "vencejo.record.v1.RecordConflict":
        server = try Record.RecordConflict(serializedBytes: detail.value).serverRecord
      default: break
      }
    }
  }
}

extension Record.Record {
  /// A note.
  init(_ name: String, title: String, content: String) {
    self.init(name: name, recordType: "Note")
    self["title"] = title
    self["content"] = content
  }

  subscript(field: String) -> String {
    get {
      if case .stringValue(let text)? = fields[field]?.kind { text } else { "" }
    }
    set { fields[field] = .init(kind: .stringValue(newValue)) }
  }

  /// What CloudKit asks an app to do with its three records: a field that only one side changed
  /// is that side's, and one that both changed says so.
  static func merged(ancestor: Self, server: Self, client: Self) -> Self {
    var result = server
    for field in ["title", "content"] where client[field] != ancestor[field] {
      let isMine = server[field] == ancestor[field] || server[field] == client[field]
      result[field] = isMine ? client[field] : "\(server[field]) / \(client[field])"
    }
    return result
  }
}

extension Record.OperationResult {
  /// The record, or the reason why it is not saved.
  func outcome() throws -> Record.Record {
    switch result {
    case .record(let record)?: return record
    case .error(let status)?: throw try Failure(status)
    case .deleted?, nil: return .init()
    }
  }
}

func save(_ record: Record.Record, _ keys: String...) -> Record.RecordOperation {
  .init(operation: .save(.init(record: record, changedKeys: keys)))
}

struct Notes {
  let records: Record.RecordClient
  let options: CallOptions
  let zone: String

  init(_ address: String, _ handle: String) async throws {
    let channel = try Channel(address)
    let auth = Auth.AuthClient(channel)
    let password = "a password for the example"
    let tokens: Auth.TokenPair?
    do {
      tokens = try await auth.signUp(.init(handle: handle, password: password)).tokens
    } catch {
      guard error.code == .alreadyExists else { throw error }
      tokens = try await auth.signIn(
        .init(credential: .password(.init(identifier: handle, password: password)))
      ).tokens
    }
    var options = CallOptions()
    options.metadata["authorization"] = "Bearer \(tokens?.accessToken ?? "")"
    let records = Record.RecordClient(channel)
    do {
      let made = try await records.createZone(
        .init(parent: database, zoneId: "Notes"), options)
      zone = made.zone?.name ?? ""
    } catch {
      guard error.code == .alreadyExists else { throw error }
      let known = try await records.getZone(.init(name: "\(database)/zones/Notes"), options)
      zone = known.zone?.name ?? ""
    }
    self.records = records
    self.options = options
  }

  func name(_ record: String) -> String { "\(zone)/records/\(record)" }

  /// All notes, the newest first.
  func fetch() async throws -> [Record.Record] {
    var notes: [Record.Record] = []
    var token = ""
    repeat {
      let page = try await records.queryRecords(
        .init(
          parent: zone,
          query: .init(
            recordType: "Note", sort: [.init(field: "___createTime", descending: true)]),
          pageToken: token), options)
      notes += page.records
      token = page.nextPageToken
    } while !token.isEmpty
    return notes
  }

  func modify(
    _ operations: [Record.RecordOperation], atomic: Bool? = nil
  ) async throws -> [Record.OperationResult] {
    try await records.modifyRecords(
      .init(parent: database, operations: operations, atomic: atomic), options
    ).results
  }

  /// One operation.
  @discardableResult
  func one(_ operation: Record.RecordOperation) async throws -> Record.Record {
    try await modify([operation]).first?.outcome() ?? .init()
  }
}

func show(_ notes: [Record.Record]) {
  say("notes: " + notes.map { "\($0["title"])=\($0["content"])" }.joined(separator: ", "))
}

func say(_ line: String) {
  print(line)
  fflush(nil)
}

func tour(_ app: Notes) async throws {
  let first = try await app.one(
    save(.init(app.name("first"), title: "Shopping", content: "milk")))
  try await app.one(save(.init(app.name("second"), title: "Ideas", content: "fly")))
  show(try await app.fetch())

  // Another device is faster: the answer brings its record, and ours is merged into it.
  var other = first
  other["content"] = "milk, bread"
  try await app.one(save(other, "content"))
  var mine = first
  mine["title"] = "To buy"
  mine["content"] = "milk, eggs"
  do {
    try await app.one(save(mine, "title", "content"))
    say("two devices wrote, and none of them heard of it")
    exit(1)
  } catch let failure as Failure {
    say("conflict: \(failure.reason)")
    let saved = try await app.one(
      save(.merged(ancestor: first, server: failure.server ?? .init(), client: mine)))
    say("merged: \(saved["title"])=\(saved["content"])")
  }

  // Errors come for each record. In a zone of one's own the innocent ones wait for the guilty.
  let batch = [save(.init(app.name("third"), title: "Third", content: "kept")), save(first)]
  for atomic in [true, false] {
    var reasons: [String] = []
    for result in try await app.modify(batch, atomic: atomic) {
      do {
        _ = try result.outcome()
        reasons.append("saved")
      } catch let failure as Failure {
        reasons.append(failure.reason)
      }
    }
    say("batch: \(reasons.joined(separator: " "))")
  }
  try await app.one(.init(operation: .delete(.init(name: app.name("second")))))
  try await app.one(save(.init(app.name("last"), title: "Done", content: "!")))
  show(try await app.fetch())
}

/// Refreshes whenever the saved subscription fires, until a note says Done.
func watch(_ app: Notes) async throws {
  let made = try await app.records.createSubscription(
    .init(
      parent: database, subscriptionId: "notes",
      subscription: .init(
        kind: .query(
          .init(
            query: .init(recordType: "Note"), firesOn: [.creation, .update, .deletion])),
        notificationInfo: .init(title: "{title}", incrementsBadge: true))), app.options)
  let name = made.subscription?.name ?? ""
  // What fired while this device was away; the stream goes on after that.
  let missed = try await app.records.listFirings(
    .init(parent: name, pageSize: 1000), app.options)
  say("missed: \(missed.firings.count), badge \(missed.badge)")
  _ = try await app.records.acknowledgeFirings(
    .init(parent: name, changeToken: missed.changeToken), app.options)
  let call = app.records.subscribe(
    .init(
      parent: database, targets: [.init(targetId: 1, target: .subscription(name))],
      resumeToken: missed.changeToken), app.options)
  var notes = try await app.fetch()
  say("watching")
  for try await frame in call {
    guard case .firing? = frame.event else { continue }
    if !notes.contains(where: { $0["title"] == "Done" }) { notes = try await app.fetch() }
    if notes.contains(where: { $0["title"] == "Done" }) { break }
  }
  call.cancel()
  show(notes)
}

guard CommandLine.arguments.count == 4 else {
  say("usage: notes ADDRESS HANDLE tour|watch")
  exit(64)
}
let app = try await Notes(CommandLine.arguments[1], CommandLine.arguments[2])
switch CommandLine.arguments[3] {
case "tour": try await tour(app)
default: try await watch(app)
}

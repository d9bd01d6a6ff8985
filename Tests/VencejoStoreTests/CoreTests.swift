import Glibc
import Testing
import VencejoCrypto
import VencejoSQLite

@testable import VencejoStore

private let kind = EventKind(rawValue: 999)

@Suite struct CoreTests {
  let scratch: Scratch
  init() throws { scratch = try Scratch() }

  @Test("Rule 2: positions are in the order of commits, without holes")
  func positionsAreContiguousAcrossFailuresAndRestarts() async throws {
    let seen = Shared<[Int64]>([])
    struct Refused: Error {}
    for round in 0..<3 {
      let store = try scratch.open()
      store.observe { batch in
        #expect(batch.transactions.allSatisfy { $0.last?.isLast == true })
        #expect(batch.transactions.allSatisfy { $0.dropLast().allSatisfy { !$0.isLast } })
        seen.update { $0 += batch.transactions.joined().map(\.position) }
      }
      await withTaskGroup { group in
        for index in 0..<100 {
          group.addTask {
            _ = try? await store.write { transaction in
              transaction.append(kind, user: 1)
              transaction.append(kind, user: 2)
              if index % 3 == 0 { throw Refused() }
            }
          }
        }
      }
      let head = try await store.read { try $0.head() }
      #expect(head == Int64(round + 1) * 132)
      store.close()
    }
    #expect(seen.value == Array(1...396))
  }

  @Test func pruningDoesNotRestartTheCounter() async throws {
    var store = try scratch.open()
    for _ in 0..<3 { try await store.write { _ = $0.append(kind, user: 1) } }
    try await store.write { try $0.run("DELETE FROM event") }
    store.close()
    store = try scratch.open()
    defer { store.close() }
    #expect(try await store.write { $0.append(kind, user: 1) } == 4)
  }

  @Test func operationsThatWaitShareACommit() async throws {
    let store = try scratch.open()
    defer { store.close() }
    let batches = Shared<[Int]>([])
    store.observe { batch in batches.update { $0.append(batch.transactions.count) } }
    // The first write holds the writer until all others are in the queue.
    let gate = Shared(false)
    async let first: Void = store.write { _ in while !gate.value { sched_yield() } }
    await withTaskGroup { group in
      let started = Shared(0)
      for _ in 0..<50 {
        group.addTask {
          started.update { $0 += 1 }
          _ = try? await store.write { $0.append(kind, user: 1) }
        }
      }
      group.addTask {
        while started.value < 50 {
          // Between two looks.
          try? await Task.sleep(for: .milliseconds(1))
        }
        gate.set(true)
      }
    }
    try await first
    #expect(batches.value.reduce(0, +) == 50)
    #expect(batches.value.count <= 10)
  }

  @Test func aFullQueueIsRefusedAndAClosedStoreToo() async throws {
    let store = try scratch.open { $0.queueLimit = 1 }
    let gate = Shared(false)
    let running = Shared(false)
    async let first: Void = store.write { _ in
      running.set(true)
      while !gate.value { sched_yield() }
    }
    while !running.value {
      // Between two looks.
      try? await Task.sleep(for: .milliseconds(1))
    }
    let reasons = await withTaskGroup { group in
      let refused = Shared(0)
      for _ in 0..<3 {
        group.addTask {
          let reason = await reason { try await store.write { _ in } }
          if reason != nil,
            refused.update({
              $0 += 1; return $0
            }) == 2
          {
            gate.set(true)
          }
          return reason
        }
      }
      return await group.reduce(into: [String?]()) { $0.append($1) }
    }
    try await first
    #expect(reasons.compactMap(\.self) == ["STORE_BUSY", "STORE_BUSY"])
    store.close()
    #expect(await reason { try await store.write { _ in } } == "STORE_CLOSED")
    #expect(await reason { try await store.read { _ in } } == "STORE_CLOSED")
  }

  @Test func readersSeeOneSnapshotAndCannotWrite() async throws {
    let store = try scratch.open()
    defer { store.close() }
    let pair = try await store.read { transaction in
      let before = try transaction.head()
      // Another thread commits meanwhile.
      let done = Shared(false)
      Task {
        try await store.write { _ = $0.append(kind, user: 1) }
        done.set(true)
      }
      while !done.value { sched_yield() }
      return (before, try transaction.head())
    }
    #expect(pair == (0, 0))
    #expect(try await store.read { try $0.head() } == 1)
    let refusal = await reason {
      _ = try await store.read { try $0.connection.run("DELETE FROM event") }
    }
    #expect(refusal != nil)
    #expect(try await store.read { try $0.head() } == 1)
  }

  @Test func aFolderServesOneStoreAtATime() async throws {
    let store = try scratch.open()
    #expect(await reason { _ = try scratch.open() } == "DATA_FOLDER_IN_USE")
    store.close()
    withExtendedLifetime(store) {}
  }

  @Test func aClosedStoreGivesTheFolderBack() async throws {
    let store = try scratch.open()
    store.close()
    try scratch.open().close()
    withExtendedLifetime(store) {}
  }

  @Test func saysWhatIsWrongWithTheFolder() async throws {
    try scratch.write("file", [1])
    #expect(
      await reason { _ = try Store.open(directory: scratch.path + "/file") }
        == "DATA_FOLDER_UNREADABLE")
    #expect(
      await reason { _ = try Store.open(directory: "/proc/nowhere") } == "DATA_FOLDER_UNREADABLE")
    try scratch.write("vencejo.sqlite", Array("no database at all, I am afraid. ".utf8))
    #expect(await reason { _ = try scratch.open() } == "NOT_A_DATABASE")
  }

  @Test func refusesADatabaseNewerThanTheProgram() async throws {
    try scratch.open().close()
    do {
      let db = try Connection(path: scratch.path + "/vencejo.sqlite")
      try db.execute("PRAGMA user_version = 1000")
    }
    #expect(await reason { _ = try scratch.open() } == "NEWER_SCHEMA")
  }
}

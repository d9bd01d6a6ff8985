import Glibc
import Synchronization
import Testing
import VencejoSQLite

@testable import VencejoStore

/// Operations that go without a savepoint of their own, and those they share a commit with.
@Suite struct WriterTests {
  let scratch: Scratch
  let store: Store

  init() throws {
    scratch = try Scratch()
    store = try scratch.open { _ in }
  }

  private func mark(_ number: Int64, then failure: StoreError? = nil, isolated: Bool = false)
    -> Task<Void, any Error>
  {
    // Immediate: it is in the writer's queue when this returns.
    Task.immediate { [store] in
      try await store.write(isolated: isolated) {
        try $0.run("INSERT INTO mention(chat_id, user_id, seq) VALUES (1, 1, ?)", number)
        if let failure { throw failure }
      }
    }
  }

  private func refused(_ failure: StoreError) -> Task<Void, any Error> {
    Task.immediate { [store] in try await store.write(isolated: false) { _ in throw failure } }
  }

  private func marks() async throws -> [Int64] {
    try await store.read { try $0.all("SELECT seq FROM mention ORDER BY seq") { $0.int(0) } }
  }

  /// What is queued meanwhile shares a commit.
  private func together(_ queue: () -> [Task<Void, any Error>]) async -> [StoreError?] {
    let (isInside, isOpen) = (Flag(), Flag())
    let gate = Task.immediate { [store] in
      try await store.write { _ in
        isInside.raise()
        while !isOpen.isUp { sched_yield() }
      }
    }
    // From here on the writer takes nothing before the gate opens.
    while !isInside.isUp { try? await Task.sleep(for: .milliseconds(1)) }
    let tasks = queue()
    isOpen.raise()
    _ = await gate.result
    var outcomes: [StoreError?] = []
    for task in tasks {
      switch await task.result {
      case .success: outcomes.append(nil)
      case .failure(let error): outcomes.append(error as? StoreError)
      }
    }
    return outcomes
  }

  private let failure = StoreError.invalid("field", "BAD_FIELD", "not this one")

  @Test func refusedBeforeAChangeItHarmsNobody() async throws {
    let outcomes = await together { [mark(1), refused(failure), mark(2), mark(3, isolated: true)] }
    #expect(outcomes.map { $0?.reason } == [nil, "BAD_FIELD", nil, nil])
    #expect(try await marks() == [1, 2, 3])
  }

  @Test func isolatedItIsUndoneAlone() async throws {
    let outcomes = await together { [mark(1), mark(2, then: failure, isolated: true), mark(3)] }
    #expect(outcomes.map { $0?.reason } == [nil, "BAD_FIELD", nil])
    #expect(try await marks() == [1, 3])
  }

  /// All or nothing, even for an operation that broke its word: nobody hears of a success that is
  /// not on disk.
  @Test func afterAChangeNothingOfTheCommitRemains() async throws {
    let outcomes = await together { [mark(1), mark(2, then: failure), mark(3, isolated: true)] }
    #expect(outcomes.map { $0?.reason } == ["BAD_FIELD", "BAD_FIELD", "BAD_FIELD"])
    #expect(try await marks().isEmpty)
    try await mark(4).value
    #expect(try await marks() == [4])
  }
}

private final class Flag: Sendable {
  private let value = Atomic(false)
  var isUp: Bool { value.load(ordering: .acquiring) }
  func raise() { value.store(true, ordering: .releasing) }
}

import Synchronization
import VencejoSQLite

/// A value that any thread may look at and one replaces.
final class Shared<Value: Sendable>: Sendable {
  private let state: Mutex<Value>
  init(_ value: Value) { state = Mutex(value) }
  var value: Value { state.withLock { $0 } }
  func set(_ value: Value) { state.withLock { $0 = value } }
  func update<R: Sendable>(_ change: (inout Value) -> R) -> R {
    state.withLock { value in
      var copy = value
      defer { value = copy }
      return change(&copy)
    }
  }
}

/// A write on its way: what to do, and who waits for it.
///
/// `@unchecked Sendable`: made by its caller, then handed through the queue to the writer's
/// thread, which alone touches it.
class PendingWrite: @unchecked Sendable {
  /// It may fail after it changed something: what it did is undone then, and nothing else. Where
  /// everything is checked first this can be left out, and with it the savepoint, at which the
  /// index of words writes all it has gathered to the disk's pages.
  let isIsolated: Bool
  init(isIsolated: Bool) { self.isIsolated = isIsolated }

  /// Does the work; answers why it failed, if it did.
  func run(_ transaction: WriteTransaction) -> StoreError? { nil }
  /// Lets the caller go on: with `lost` when the commit failed or the work never ran.
  func resume(_ lost: StoreError?) {}
}

/// A ``PendingWrite`` with its type of answer.
///
/// `@unchecked Sendable`: as its superclass.
final class TypedWrite<R: Sendable>: PendingWrite, @unchecked Sendable {
  private let body: @Sendable (WriteTransaction) throws -> R
  private let continuation: UnsafeContinuation<Result<R, StoreError>, Never>
  private var result: Result<R, StoreError> = .failure(Store.closed)

  init(
    isIsolated: Bool, _ body: @Sendable @escaping (WriteTransaction) throws -> R,
    _ continuation: UnsafeContinuation<Result<R, StoreError>, Never>
  ) {
    self.body = body
    self.continuation = continuation
    super.init(isIsolated: isIsolated)
  }

  override func run(_ transaction: WriteTransaction) -> StoreError? {
    do {
      result = .success(try body(transaction))
      return nil
    } catch {
      let failure = StoreError(wrapping: error)
      result = .failure(failure)
      return failure
    }
  }

  override func resume(_ lost: StoreError?) {
    continuation.resume(returning: lost.map { .failure($0) } ?? result)
  }
}

/// The one thread that writes.
///
/// A batch is what arrived while the batch before it was on its way to the disk: no operation
/// waits on purpose, and under load many share one fsync.
final class Writer: Sendable {
  let queue: WorkQueue<PendingWrite>
  let authority: Shared<TokenAuthority>
  let observer = Shared<@Sendable (CommittedBatch) -> Void>({ _ in })
  let hooksQueued = Shared<@Sendable () -> Void>({})
  private let thread: WorkerThread

  init(_ connection: Connection, state: LogState, options: StoreOptions) throws(SQLiteError) {
    let queue = WorkQueue<PendingWrite>(capacity: options.queueLimit)
    let authority = Shared(state.authority)
    let observer = self.observer
    let hooksQueued = self.hooksQueued
    // Handed over to the thread: nobody else keeps it.
    nonisolated(unsafe) let handed = connection
    let thread = WorkerThread("vencejo-writer") {
      var loop = WriterLoop(
        connection: handed, authority: authority, observer: observer, hooksQueued: hooksQueued,
        position: state.lastPosition, clock: options.clock, crashPoint: options.crashPoint,
        pageLimit: options.pageLimit)
      while let batch = queue.pop(options.batchLimit) { loop.commit(batch) }
      loop.finish()
    }
    guard let thread else { throw SQLiteError(kind: .other, message: "no thread for the writer") }
    self.queue = queue
    self.authority = authority
    self.thread = thread
  }

  func close() {
    queue.close()
    thread.join()
  }
}

/// The writer's state, on its thread.
private struct WriterLoop {
  let connection: Connection
  let authority: Shared<TokenAuthority>
  let observer: Shared<@Sendable (CommittedBatch) -> Void>
  let hooksQueued: Shared<@Sendable () -> Void>
  var position: Int64
  let clock: @Sendable () -> Int64
  let crashPoint: (@Sendable (StaticString) -> Void)?
  let pageLimit: (@Sendable () -> Int64)?
  let board = SubscriptionBoard()

  mutating func commit(_ operations: [PendingWrite]) {
    let base = position
    var lost: StoreError?
    var refused: [Int: StoreError] = [:]
    var transactions: [[LoggedEvent]] = []
    var hasQueuedHooks = false
    if let pageLimit { _ = try? connection.execute("PRAGMA max_page_count = \(pageLimit())") }
    do {
      var head = base
      try connection.begin(.immediate)
      for (index, operation) in operations.enumerated() {
        if operation.isIsolated { try connection.savepoint() }
        let changes = connection.totalChanges
        let transaction = WriteTransaction(
          connection, tokens: authority.value, now: clock(), base: head, board: board)
        var failure = operation.run(transaction)
        if failure == nil {
          do throws(StoreError) {
            let events = try transaction.flushEvents()
            head = transaction.position
            if !events.isEmpty { transactions.append(events) }
          } catch {
            failure = error
            refused[index] = error
          }
        }
        // After an error that made SQLite end the whole transaction (disk full), going back to
        // the savepoint fails too: then the batch is lost, and each caller must hear it.
        if let failure, !operation.isIsolated {
          // With nothing changed there is nothing to undo; otherwise all of the batch is.
          if connection.totalChanges != changes || !connection.isInTransaction { throw failure }
        } else if failure == nil {
          if operation.isIsolated { try connection.releaseSavepoint() }
          hasQueuedHooks = hasQueuedHooks || transaction.hasQueuedHooks
        } else {
          try connection.rollbackToSavepoint()
        }
      }
      if head != base { try connection.run("UPDATE log_state SET last_position = ?", head) }
      // Of commits that log something: the others are not steps of anybody's.
      if head != base { crashPoint?("before-commit") }
      try connection.commit()
      if head != base { crashPoint?("after-commit") }
      position = head
    } catch {
      connection.rollback()
      lost = StoreError(wrapping: error)
    }
    if lost == nil, position != base {
      observer.value(CommittedBatch(base: base, head: position, transactions: transactions))
      crashPoint?("after-publish")
    }
    if lost == nil, hasQueuedHooks { hooksQueued.value() }
    for (index, operation) in operations.enumerated() { operation.resume(lost ?? refused[index]) }
  }

  func finish() {
    _ = try? connection.execute("PRAGMA optimize")
    _ = try? connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }
}

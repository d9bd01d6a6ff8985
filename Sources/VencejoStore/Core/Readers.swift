import VencejoSQLite

/// The threads that read, each with a connection and one snapshot per job.
final class ReaderPool: Sendable {
  /// Calls its argument to begin the transaction, and tells its caller what came out.
  typealias Job = @Sendable (() throws -> ReadTransaction) -> Void

  /// A reader that runs longer would keep the write-ahead log from being folded back.
  static let limitNanoseconds: UInt64 = 5_000_000_000

  let queue: WorkQueue<Job>
  private let threads: [WorkerThread]

  init(path: String, authority: Shared<TokenAuthority>, _ options: StoreOptions)
    throws(SQLiteError)
  {
    let queue = WorkQueue<Job>(capacity: options.queueLimit)
    let shared = SharedEntries()
    var threads: [WorkerThread] = []
    for index in 0..<max(1, options.readers) {
      // Handed over to its thread: nobody else keeps it.
      nonisolated(unsafe) let connection = try Connection(path: path, mode: .readWrite)
      // Read-only by this switch and not by the way it is opened: a read-only connection
      // cannot make the shared memory of a write-ahead log that is not there yet.
      try connection.execute("PRAGMA query_only = ON")
      let thread = WorkerThread("vencejo-read-\(index)") {
        while let jobs = queue.pop(1) {
          for job in jobs {
            job {
              connection.setDeadline(Connection.monotonicNanoseconds() &+ Self.limitNanoseconds)
              try connection.begin(.deferred)
              return ReadTransaction(
                connection, tokens: authority.value, now: options.clock(), sharedEntries: shared)
            }
          }
        }
      }
      guard let thread else { throw SQLiteError(kind: .other, message: "no thread for a reader") }
      threads.append(thread)
    }
    self.queue = queue
    self.threads = threads
  }

  func close() {
    queue.close()
    for thread in threads { thread.join() }
  }
}

import Glibc
public import VencejoCrypto
import VencejoSQLite

/// What a store can be told when it is opened; the defaults are for servers.
public struct StoreOptions: Sendable {
  /// Readers, each a thread with a connection of its own.
  public var readers = 4
  /// Writes and reads that may wait; one more is refused with `STORE_BUSY`.
  public var queueLimit = 16_384
  /// Operations that may share one commit.
  public var batchLimit = 512
  /// Cost of a password's hash. 2^14·8·5 is one of OWASP's equivalents; it takes 16 MiB.
  public var passwordCost = Scrypt.Parameters(cost: 1 << 14, blockSize: 8, parallelism: 5)
  /// Microseconds since the Unix epoch.
  public var clock: @Sendable () -> Int64 = { Store.systemClock() }

  /// For tests: called on the writer's thread at the named steps of each commit, where a test
  /// may end the process or copy the files. `before-commit`, `after-commit`, `after-publish`.
  public var crashPoint: (@Sendable (StaticString) -> Void)?

  /// For tests: pages the database may have, as a full disk would leave it; asked before each
  /// commit.
  public var pageLimit: (@Sendable () -> Int64)?

  public init() {}
}

/// Everything a backend remembers, in one folder.
///
/// Operations are methods of ``ReadTransaction`` and ``WriteTransaction``; they run on this
/// store's own threads, never on the caller's. A write is on disk when it returns.
public final class Store: Sendable {
  let options: StoreOptions
  let hashing: PasswordHasher
  /// The bytes of attachments.
  public let files: FileShelf
  private let folder: DataFolder
  private let writer: Writer
  private let readers: ReaderPool

  /// Opens the folder, makes it when it is missing, and brings its tables up to date. Blocks.
  ///
  /// - Throws: ``StoreError`` with `DATA_FOLDER_UNREADABLE`, `DATA_FOLDER_IN_USE`,
  ///   `NOT_A_DATABASE`, `NEWER_SCHEMA` or `STORAGE_…`.
  public static func open(directory: String, options: StoreOptions = StoreOptions())
    throws(StoreError) -> Store
  {
    try Store(directory: directory, options: options)
  }

  private init(directory: String, options: StoreOptions) throws(StoreError) {
    self.options = options
    folder = try DataFolder(directory)
    do throws(SQLiteError) {
      let connection = try Connection(path: folder.databasePath)
      try connection.migrate(Schema.migrations, application: Schema.application)
      let state = try LogState.load(connection, now: options.clock())
      writer = try Writer(connection, state: state, options: options)
      readers = try ReaderPool(path: folder.databasePath, authority: writer.authority, options)
    } catch {
      throw StoreError(error)
    }
    hashing = try PasswordHasher(options.passwordCost)
    files = try FileShelf(directory)
  }

  /// The key ring that seals and opens tokens.
  public var tokens: TokenAuthority { writer.authority.value }

  /// Microseconds since the Unix epoch, by this store's clock.
  public var now: Int64 { options.clock() }

  /// Where the data lives.
  public var directory: String { folder.path }

  /// Runs `body` on the writer's thread, in one transaction with whatever else waits, and
  /// returns once that is on disk. When `body` throws, nothing of it remains.
  ///
  /// `isolated: false` is for operations that check everything before they change anything: they
  /// cost less. When one fails nevertheless after a change, all that shares its transaction fails
  /// with it.
  @discardableResult
  public func write<R: Sendable>(
    isolated: Bool = true, _ body: @Sendable @escaping (WriteTransaction) throws -> R
  ) async throws(StoreError) -> R {
    try await withUnsafeContinuation {
      (continuation: UnsafeContinuation<Result<R, StoreError>, Never>) in
      let operation = TypedWrite(isIsolated: isolated, body, continuation)
      if let refusal = Self.refusal(writer.queue.push(operation)) { operation.resume(refusal) }
    }.get()
  }

  /// Runs `body` on a reader's thread against one snapshot.
  public func read<R: Sendable>(
    _ body: @Sendable @escaping (ReadTransaction) throws -> R
  ) async throws(StoreError) -> R {
    try await withUnsafeContinuation {
      (continuation: UnsafeContinuation<Result<R, StoreError>, Never>) in
      let job: ReaderPool.Job = { begin in
        do {
          let transaction = try begin()
          defer { transaction.connection.rollback() }
          let result = try body(transaction)
          continuation.resume(returning: .success(result))
        } catch {
          continuation.resume(returning: .failure(StoreError(wrapping: error)))
        }
      }
      if let refusal = Self.refusal(readers.queue.push(job)) {
        continuation.resume(returning: .failure(refusal))
      }
    }.get()
  }

  /// Registers who hears of commits: called on the writer's thread, after the commit, in
  /// order, before the writes' callers go on. It must be quick. One observer; a later call
  /// replaces it.
  public func observe(_ observer: @escaping @Sendable (CommittedBatch) -> Void) {
    writer.observer.set(observer)
  }

  /// Registers who hears that events wait for hooks: called on the writer's thread, after the
  /// commit. It must be quick. One observer; a later call replaces it.
  public func observeHooks(_ observer: @escaping @Sendable () -> Void) {
    writer.hooksQueued.set(observer)
  }

  /// Finishes what waits, and ends the threads. Further operations fail with `STORE_CLOSED`.
  /// Blocks; call it once.
  public func close() {
    writer.close()
    readers.close()
    hashing.close()
    files.close()
    folder.release()
  }

  private static func refusal<T>(_ admission: WorkQueue<T>.Admission) -> StoreError? {
    switch admission {
    case .accepted: nil
    case .closed: closed
    case .full:
      StoreError(
        .resourceExhausted, "STORE_BUSY", "too many operations wait",
        details: [.retry(afterMilliseconds: 1000)])
    }
  }

  static let closed = StoreError(.unavailable, "STORE_CLOSED", "the store is closing")

  /// CLOCK_REALTIME in microseconds.
  public static func systemClock() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}

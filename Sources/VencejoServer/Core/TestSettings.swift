import Glibc
import VencejoStore

#if DEBUG || TESTING
  import Synchronization
  import VencejoCrypto
#endif

/// What a test asks of a server in a process of its own, by `VENCEJO_TEST`: words `name=value` with
/// commas between. Release builds have none of it, but for those made with `-DTESTING`.
///
/// - `crash=POINT:N`: the process kills itself at the Nth pass of a named point of the writer
/// - `clock=FILE`: eight bytes, shared with the test: microseconds added to the clock
/// - `sweep=N`: milliseconds between two rounds of housekeeping
/// - `cost=N`: of a password's hash
///
/// Whatever is asked for and not obeyed is refused: a test would find faults that are none, or none
/// where there are some.
enum TestSettings {
  /// - Throws: `BAD_TEST_SETTING`.
  static func apply(to configuration: inout Backend.Configuration) throws(StoreError) {
    let mutation = getenv("VENCEJO_MUTATION").map { String(cString: $0) }
    if let mutation, !Mutation.names.contains(mutation) { throw refused(mutation) }
    guard let text = getenv("VENCEJO_TEST").map({ String(cString: $0) }) else { return }
    for word in text.split(separator: ",") {
      let parts = word.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, apply(parts[0], parts[1], to: &configuration) else {
        throw refused(String(word))
      }
    }
  }

  private static func refused(_ word: String) -> StoreError {
    StoreError(
      .invalidArgument, "BAD_TEST_SETTING", "this build does not know '\(word)'",
      metadata: ["word": word])
  }

  #if DEBUG || TESTING
    private static func apply(
      _ name: Substring, _ value: Substring, to configuration: inout Backend.Configuration
    ) -> Bool {
      switch name {
      case "crash": return crash(value, &configuration)
      case "clock": return clock(String(value), &configuration)
      case "sweep":
        guard let milliseconds = Int64(value) else { return false }
        configuration.sweepInterval = .milliseconds(milliseconds)
        configuration.presenceDebounce = .milliseconds(50)
      case "cost":
        guard let cost = Int(value) else { return false }
        configuration.store.passwordCost = Scrypt.Parameters(
          cost: cost, blockSize: 1, parallelism: 1)
      default: return false
      }
      return true
    }

    private static func crash(_ text: Substring, _ configuration: inout Backend.Configuration)
      -> Bool
    {
      let parts = text.split(separator: ":")
      guard parts.count == 2, let count = Int(parts[1]) else { return false }
      let point = String(parts[0])
      let left = Mutex(count)
      let countdown = Countdown(left)
      configuration.store.crashPoint = { name in
        // SIGKILL, as from outside: nothing is flushed, no handler runs.
        if "\(name)" == point, countdown.isOver { kill(getpid(), SIGKILL) }
      }
      return true
    }

    private final class Countdown: Sendable {
      private let left: Mutex<Int>
      init(_ left: consuming Mutex<Int>) { self.left = left }
      var isOver: Bool {
        left.withLock {
          $0 -= 1
          return $0 <= 0
        }
      }
    }

    private static func clock(_ path: String, _ configuration: inout Backend.Configuration)
      -> Bool
    {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { return false }
      defer { close(file) }
      guard let page = mmap(nil, 8, PROT_READ, MAP_SHARED, file, 0), page != MAP_FAILED
      else { return false }
      let offset = SharedOffset(UnsafeRawPointer(page))
      configuration.store.clock = { Store.systemClock() + offset.value }
      return true
    }

    /// `@unchecked Sendable`: memory that another process writes, eight bytes at once.
    private final class SharedOffset: @unchecked Sendable {
      private let page: UnsafeRawPointer
      init(_ page: UnsafeRawPointer) { self.page = page }
      var value: Int64 { page.load(as: Int64.self) }
    }
  #else
    private static func apply(
      _ name: Substring, _ value: Substring, to configuration: inout Backend.Configuration
    ) -> Bool { false }
  #endif
}

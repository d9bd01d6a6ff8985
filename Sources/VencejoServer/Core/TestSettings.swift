#if DEBUG
  import Glibc
  import Synchronization
  import VencejoCrypto
  import VencejoStore

  /// What a test asks of a server in a process of its own, by `VENCEJO_TEST`: words `name=value` with
  /// commas between. Release builds have none of it.
  ///
  /// - `crash=POINT:N`: the process kills itself at the Nth pass of a named point of the writer
  /// - `clock=FILE`: eight bytes, shared with the test: microseconds added to the clock
  /// - `sweep=N`: milliseconds between two rounds of housekeeping
  /// - `cost=N`: of a password's hash
  enum TestSettings {
    static func apply(to configuration: inout Backend.Configuration) {
      guard let text = getenv("VENCEJO_TEST").map({ String(cString: $0) }) else { return }
      for word in text.split(separator: ",") {
        let parts = word.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { continue }
        switch parts[0] {
        case "crash": crash(parts[1], &configuration)
        case "clock": clock(String(parts[1]), &configuration)
        case "sweep":
          configuration.sweepInterval = .milliseconds(Int64(parts[1]) ?? 1000)
          configuration.presenceDebounce = .milliseconds(50)
        case "cost":
          configuration.store.passwordCost = Scrypt.Parameters(
            cost: Int(parts[1]) ?? 2, blockSize: 1, parallelism: 1)
        default: break
        }
      }
    }

    private static func crash(_ text: Substring, _ configuration: inout Backend.Configuration) {
      let parts = text.split(separator: ":")
      guard parts.count == 2, let count = Int(parts[1]) else { return }
      let point = String(parts[0])
      let left = Mutex(count)
      let countdown = Countdown(left)
      configuration.store.crashPoint = { name in
        // SIGKILL, as from outside: nothing is flushed, no handler runs.
        if "\(name)" == point, countdown.isOver { kill(getpid(), SIGKILL) }
      }
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

    private static func clock(_ path: String, _ configuration: inout Backend.Configuration) {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0, let page = mmap(nil, 8, PROT_READ, MAP_SHARED, file, 0), page != MAP_FAILED
      else { return }
      close(file)
      let offset = SharedOffset(UnsafeRawPointer(page))
      configuration.store.clock = { Store.systemClock() + offset.value }
    }

    /// `@unchecked Sendable`: memory that another process writes, eight bytes at once.
    private final class SharedOffset: @unchecked Sendable {
      private let page: UnsafeRawPointer
      init(_ page: UnsafeRawPointer) { self.page = page }
      var value: Int64 { page.load(as: Int64.self) }
    }
  }
#endif

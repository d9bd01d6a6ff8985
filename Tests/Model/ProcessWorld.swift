import Glibc
import Synchronization
import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// A server in a process of its own, which kills itself at a named point of its writer, and may be
/// started again on the same folder. The test moves its clock.
final class ProcessWorld: Sendable {
  static let crashPoints = ["before-commit", "after-commit", "after-publish"]

  let root: String
  private let clock: SharedClock
  private let process: Mutex<pid_t>
  private let hasEnded = Atomic(false)

  /// `crash`: at which pass of which point it dies; nil for never.
  convenience init(root: String, clock: SharedClock, crash: (point: String, pass: Int)?) throws {
    var settings = "clock=\(clock.path),sweep=50,cost=2"
    if let crash { settings += ",crash=\(crash.point):\(crash.pass)" }
    try self.init(root: root, clock: clock, settings: settings)
  }

  /// `settings`: what `VENCEJO_TEST` says.
  init(root: String, clock: SharedClock, settings: String) throws {
    self.root = root
    self.clock = clock
    let (child, said) = try Self.start(
      [
        try #require(Self.program), "serve", "--listen", "unix:\(root)/socket", "--data",
        "\(root)/data", "--quiet", "--device-limit", "1000000:1000000", "--change-limit",
        "1000000:1000000", "--call-limit", "1000000:1000000",
      ], ["VENCEJO_TEST=\(settings)"])
    process = Mutex(child)
    guard said.hasPrefix("listening on") else {
      var status: CInt = 0
      kill(child, SIGKILL)
      waitpid(child, &status, 0)
      throw NoServer(said: said)
    }
  }

  /// It ended instead of listening; why is on standard error.
  struct NoServer: Error {
    let said: String
  }

  /// The program built beside this test's bundle, and no other: it must know what the test asks of
  /// it.
  private static let program: String? = {
    var path = [UInt8](repeating: 0, count: 4096)
    let count = path.withUnsafeMutableBytes { buffer in
      readlink("/proc/self/exe", buffer.bindMemory(to: CChar.self).baseAddress!, buffer.count)
    }
    let own = String(decoding: path.prefix(max(0, count)), as: UTF8.self)
    for candidate in CommandLine.arguments + [own] {
      guard let slash = candidate.lastIndex(of: "/") else { continue }
      let program = candidate[..<slash] + "/vencejo"
      if access(String(program), X_OK) == 0 { return String(program) }
    }
    return nil
  }()

  func channel() throws -> Channel {
    var configuration = Channel.Configuration()
    configuration.observers = [MethodsCalled.shared]
    return try Channel("unix:\(root)/socket", configuration: configuration)
  }

  /// What `vencejo admin` says, beside the running server.
  func admin(_ words: String...) throws -> String {
    let (child, said) = try Self.start(
      [try #require(Self.program), "admin"] + words + ["--data", "\(root)/data"], [])
    var status: CInt = 0
    waitpid(child, &status, 0)
    return said
  }

  /// Whether the process is gone.
  var hasCrashed: Bool {
    if hasEnded.load(ordering: .acquiring) { return true }
    return process.withLock { process in
      var status: CInt = 0
      guard waitpid(process, &status, WNOHANG) == process else { return false }
      hasEnded.store(true, ordering: .releasing)
      return true
    }
  }

  func killNow() { process.withLock { _ = kill($0, SIGKILL) } }

  /// Ends it as an operator would, or from outside if it does not.
  func end() async {
    guard !hasCrashed else { return }
    process.withLock { _ = kill($0, SIGTERM) }
    let deadline = ContinuousClock.now + .seconds(20)
    while !hasCrashed {
      if ContinuousClock.now > deadline { process.withLock { _ = kill($0, SIGKILL) } }
      await Task.yield()
    }
  }

  /// Answers the process and its first line.
  private static func start(_ arguments: [String], _ extra: [String]) throws -> (pid_t, String) {
    var pipes: [CInt] = [0, 0]
    try #require(pipe(&pipes) == 0)
    for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var words = arguments.map { strdup($0) } + [nil]
    var environment = extra.map { strdup($0) }
    var at = environ
    while let entry = at.pointee {
      if !String(cString: entry).hasPrefix("VENCEJO_TEST=") { environment.append(strdup(entry)) }
      at += 1
    }
    environment.append(nil)
    defer { for text in words + environment { free(text) } }
    var process = pid_t()
    let code = posix_spawn(&process, arguments[0], &actions, nil, &words, &environment)
    close(pipes[1])
    try #require(code == 0, "\(arguments[0]) does not start")
    // It says when it listens.
    var byte: UInt8 = 0
    var said = ""
    while read(pipes[0], &byte, 1) == 1, byte != UInt8(ascii: "\n") {
      said.unicodeScalars.append(Unicode.Scalar(byte))
    }
    close(pipes[0])
    return (process, said)
  }
}

/// Microseconds that the server's clock is ahead, in memory that both processes have.
///
/// `@unchecked Sendable`: eight bytes, written at once, by one test.
final class SharedClock: @unchecked Sendable {
  let path: String
  private let page: UnsafeMutableRawPointer

  init(path: String) throws {
    self.path = path
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(file >= 0 && ftruncate(file, 8) == 0)
    page = try #require(mmap(nil, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
    close(file)
  }

  func advance(seconds: Int64) {
    page.storeBytes(
      of: page.load(as: Int64.self) + seconds * 1_000_000, as: Int64.self)
  }

  deinit { munmap(page, 8) }
}

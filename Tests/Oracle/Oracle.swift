import Glibc
import Synchronization
import TestSupport
public import VencejoProtobuf

/// Google's Python protobuf in a process of its own, as a second opinion on the codec.
///
/// The environment variable `VENCEJO_PYTHON` names a python that has it. See `oracle.py`. The
/// process ends with the tests', when its input does.
public final class Oracle: Sendable {
  /// What to ask, in `oracle.py`'s letters.
  public enum Operation: Character {
    case addFile = "F"
    /// Argument: a seed. Result: a random message.
    case random = "G"
    /// Like `random`, without infinite numbers.
    case randomFinite = "g"
    /// Like `random`, without what protobuf-c cannot hold.
    case randomPlain = "n"
    /// Decodes and encodes again.
    case recode = "P"
    case toJSON = "J"
    case fromJSON = "K"
    /// Like `fromJSON`, with unknown names skipped.
    case fromJSONIgnoring = "k"
    case toText = "T"
    case fromText = "U"
    /// Argument: source, target and mask, each behind its length in four bytes. Result: the
    /// target with what the mask names taken from the source.
    case mask = "M"
    /// Like `mask`, replacing messages and lists.
    case maskReplacing = "m"
  }

  /// Whether a test that needs the oracle shall run: a CI run without one must fail, not skip.
  public static var isWanted: Bool {
    getenv("VENCEJO_PYTHON") != nil || getenv("VENCEJO_CI").map { String(cString: $0) } == "1"
  }

  /// Whose protobuf is asked.
  public enum Engine: String, CaseIterable, Sendable {
    case python
    /// `oracle.cc`: the wire and text.
    case cpp
    /// `oracle.c`, protobuf-c: the wire only, and only messages that its makefile names.
    case c

    /// What to run: the folder `VENCEJO_ORACLES` holds those that Tests/Oracle/Makefile makes.
    fileprivate var command: [String]? {
      let variable = self == .python ? "VENCEJO_PYTHON" : "VENCEJO_ORACLES"
      guard let value = getenv(variable).map({ String(cString: $0) }) else { return nil }
      if self == .python {
        return [value, #filePath.dropLast("Oracle.swift".count) + "oracle.py"]
      }
      return ["\(value)/oracle-\(rawValue)"]
    }
  }

  /// Whether there is an engine to ask: a CI run without one must fail, not skip.
  public static func isWanted(_ engine: Engine) -> Bool {
    engine.command != nil || getenv("VENCEJO_CI").map { String(cString: $0) } == "1"
  }

  private let input: Int32
  private let output: Int32
  /// One question at a time.
  private let turn = Mutex(())

  /// What went wrong with the process itself.
  public struct Failure: Error {
    public let text: String
  }

  /// Starts the process and teaches it files and all they import.
  public convenience init(file: FileDescriptor, _ more: FileDescriptor...) throws {
    try self.init(.python, files: [file] + more)
  }

  /// Starts the process of an engine and teaches it files and all they import.
  public init(_ engine: Engine, files: [FileDescriptor]) throws {
    guard let command = engine.command, let program = command.first else {
      throw Failure(text: "VENCEJO_PYTHON or VENCEJO_ORACLES names no \(engine)")
    }
    var (requests, answers): ([Int32], [Int32]) = ([0, 0], [0, 0])
    guard pipe(&requests) == 0, pipe(&answers) == 0 else { throw Failure(text: "no pipe") }
    // Another process must not hold them open.
    for end in requests + answers { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, requests[0], 0)
    posix_spawn_file_actions_adddup2(&actions, answers[1], 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let status = posix_spawn(&process, program, &actions, nil, &arguments, environ)
    close(requests[0])
    close(answers[1])
    guard status == 0 else { throw Failure(text: "cannot start \(program)") }
    input = requests[1]
    output = answers[0]
    var known: Set<String> = []
    for file in files { try teach(file, &known) }
  }

  private func teach(_ file: FileDescriptor, _ known: inout Set<String>) throws {
    guard known.insert(file.path).inserted else { return }
    for dependency in file.dependencies { try teach(dependency, &known) }
    if case .failure(let error)? = try ask(.addFile, "", [file.serialized]).first { throw error }
  }

  /// Asks about many arguments at once.
  public func ask(
    _ operation: Operation, _ message: String, _ arguments: [[UInt8]]
  ) throws -> [Result<[UInt8], Failure>] {
    var body = Array(String(operation.rawValue).utf8)
    for part in [Array(message.utf8)] + arguments { body += length(part) + part }
    let answer = try turn.withLock { _ in
      try send(length(body) + body)
      return try receive(size(try receive(4), at: 0))
    }
    var results: [Result<[UInt8], Failure>] = []
    var position = 0
    while position < answer.count {
      let count = size(answer, at: position + 1)
      let bytes = Array(answer[(position + 5)..<(position + 5 + count)])
      results.append(
        answer[position] == 1
          ? .success(bytes) : .failure(Failure(text: String(decoding: bytes, as: UTF8.self))))
      position += 5 + count
    }
    return results
  }

  /// Random messages of a type from seeds 0 to `count` - 1.
  public func random(named name: String, _ count: Int, finite: Bool = false) throws -> [[UInt8]] {
    let seeds = (0..<count).map { Array(String($0).utf8) }
    return try ask(finite ? .randomFinite : .random, name, seeds).map { try $0.get() }
  }

  /// Random messages from seeds 0 to `count` - 1.
  public func random<M: Message>(
    _: M.Type, _ count: Int, finite: Bool = false
  ) throws -> [[UInt8]] { try random(named: M.messageName, count, finite: finite) }

  /// Messages with up to four bytes replaced, some for each.
  public static func mutated(_ originals: [[UInt8]], each count: Int = 40) -> [[UInt8]] {
    var random = SeededGenerator(state: 7)
    var result: [[UInt8]] = []
    for bytes in originals where !bytes.isEmpty && bytes.count < 2000 {
      for _ in 0..<count {
        var bytes = bytes
        for _ in 0...random.next(upperBound: UInt64(3)) {
          let index = Int(random.next(upperBound: UInt64(bytes.count)))
          bytes[index] = UInt8(truncatingIfNeeded: random.next())
        }
        result.append(bytes)
      }
    }
    return result
  }

  private func length(_ bytes: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(bytes.count).littleEndian) { Array($0) }
  }

  private func size(_ bytes: [UInt8], at offset: Int) -> Int {
    (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
  }

  private func send(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
      guard count > 0 else { throw Failure(text: "the oracle has gone") }
      rest = rest.dropFirst(count)
    }
  }

  private func receive(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let got = bytes.withUnsafeMutableBytes {
        read(output, $0.baseAddress.map { $0 + filled }, count - filled)
      }
      guard got > 0 else { throw Failure(text: "the oracle has gone") }
      filled += got
    }
    return bytes
  }
}

import Glibc
import VencejoDescriptors
import VencejoHTTP2
import VencejoJSON
import VencejoProtobuf
import VencejoText

/// How messages are written on the command line and shown.
enum MessageForm: String {
  case json, text
}

/// The request messages: from an argument at once, from standard input as they are typed.
struct Requests {
  private let method: DescribedMethod
  private let form: MessageForm
  private let types: PackedTypes
  private let ignoresUnknown: Bool
  private var splitter: MessageSplitter
  /// In the order of the requests, from `taken` on.
  private var ready: [[UInt8]] = []
  private var taken = 0
  private let usesInput: Bool
  private var isEnded = false
  private(set) var count = 0

  /// `data` is `@` or `-` for standard input, `@FILE` for a file, nil for one empty message, or none on a stream.
  /// With `takesTurns` there may be several for a method that takes one.
  init(
    _ data: String?, for method: DescribedMethod, form: MessageForm, types: PackedTypes,
    ignoresUnknown: Bool, takesTurns: Bool = false
  ) async throws(ArgumentList.Fault) {
    self.method = method
    self.form = form
    self.types = types
    self.ignoresUnknown = ignoresUnknown
    splitter = MessageSplitter(form)
    usesInput = data == "@" || data == "-" || data == "@-"
    if !usesInput {
      if let data, data.hasPrefix("@") {
        try await take(ProtoFiles.read(String(data.dropFirst())))
      } else {
        try await take(Array((data ?? "").utf8))
      }
      try await end()
      if ready.isEmpty, !method.takesStream { ready = [[]] }
    }
    // All of one request is there before anything is sent.
    if usesInput, !method.takesStream {
      try await take(StandardInput.readAll())
      try await end()
      if ready.isEmpty { ready = [[]] }
    }
    if !method.takesStream, !takesTurns, ready.count != 1 {
      throw ArgumentList.Fault("\(ready.count) requests for a method that takes one")
    }
  }

  /// The next request, encoded; nil after the last.
  mutating func next() async throws(ArgumentList.Fault) -> [UInt8]? {
    while taken == ready.count {
      ready.removeAll(keepingCapacity: true)
      taken = 0
      if isEnded { return nil }
      let bytes = await StandardInput.chunk()
      if bytes.isEmpty { try await end() } else { try await take(bytes) }
    }
    count += 1
    defer { taken += 1 }
    return ready[taken]
  }

  private mutating func take(_ bytes: [UInt8]) async throws(ArgumentList.Fault) {
    for message in try splitter.feed(bytes) { ready.append(try await encoded(message)) }
  }

  private mutating func end() async throws(ArgumentList.Fault) {
    isEnded = true
    if let message = try splitter.end() { ready.append(try await encoded(message)) }
  }

  private func encoded(_ text: String) async throws(ArgumentList.Fault) -> [UInt8] {
    await types.learn(PackedTypes.names(in: text, form))
    let what = "the request is no \(method.input.fullName)"
    switch form {
    case .json:
      var options = JSONOptions()
      options.types = types.pool
      options.ignoreUnknown = ignoresUnknown
      do throws(JSONError) {
        return try JSONFormat.decode(text, as: method.input, options)
      } catch {
        throw ArgumentList.Fault("\(what): \(error)")
      }
    case .text:
      var options = TextOptions()
      options.types = types.pool
      options.ignoreUnknown = ignoresUnknown
      do throws(TextError) {
        return try TextFormat.message(text, as: method.input, options).serializedBytes()
      } catch {
        throw ArgumentList.Fault("\(what): \(error)")
      }
    }
  }
}

/// Cuts what is typed into messages: JSON's outermost objects, which may follow one another with
/// or without white space; texts at the record separator (U+001E). Pure.
struct MessageSplitter {
  private let form: MessageForm
  private var pending: [UInt8] = []
  private var depth = 0
  private var inString = false
  private var escaped = false

  init(_ form: MessageForm) { self.form = form }

  /// The messages that are whole now.
  mutating func feed(_ bytes: [UInt8]) throws(ArgumentList.Fault) -> [String] {
    switch form {
    case .json: return try objects(bytes)
    case .text:
      pending += bytes
      var parts = pending.split(separator: 0x1E, omittingEmptySubsequences: false)
      pending = parts.popLast().map(Array.init) ?? []
      return parts.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// What is left; throws when that is a piece.
  mutating func end() throws(ArgumentList.Fault) -> String? {
    defer { pending = [] }
    switch form {
    case .json:
      guard depth == 0 else {
        throw ArgumentList.Fault("the request is no whole JSON object: a bracket stays open")
      }
      return nil
    case .text:
      let isBlank = pending.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
      return isBlank ? nil : String(decoding: pending, as: UTF8.self)
    }
  }

  private mutating func objects(_ bytes: [UInt8]) throws(ArgumentList.Fault) -> [String] {
    var found: [String] = []
    for (index, byte) in bytes.enumerated() {
      if depth > 0 { pending.append(byte) }
      if inString {
        if escaped {
          escaped = false
        } else if byte == UInt8(ascii: "\\") {
          escaped = true
        } else if byte == UInt8(ascii: "\"") {
          inString = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\"") where depth > 0: inString = true
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        if depth == 0 { pending = [byte] }
        depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 {
          found.append(String(decoding: pending, as: UTF8.self))
          pending = []
        }
        if depth < 0 { throw ArgumentList.Fault("the request closes a bracket it never opened") }
      case 0x20, 0x09, 0x0A, 0x0D: break
      default:
        if depth == 0 {
          throw ArgumentList.Fault(
            "the request is no JSON object: it begins with "
              + "'\(String(decoding: bytes[index...].prefix(12), as: UTF8.self))'")
        }
      }
    }
    return found
  }
}

enum StandardInput {
  private static let chunkSize = 65_536

  /// What there is of it, empty at its end. Reading blocks, and so has a thread of its own.
  static func chunk() async -> [UInt8] {
    await withUnsafeContinuation { continuation in
      detachThread { continuation.resume(returning: readOnce()) }
    }
  }

  static func readAll() -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let more = readOnce()
      if more.isEmpty { return bytes }
      bytes += more
    }
  }

  private static func readOnce() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: chunkSize)
    while true {
      let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
      if count >= 0 { return Array(buffer[..<count]) }
      if errno != EINTR { return [] }
    }
  }
}

import Synchronization
import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf

/// Types packed in an `Any`, which the files of a method do not name: a server with reflection
/// is asked for each of them once.
final class PackedTypes: Sendable {
  private struct State {
    var pool: DescriptorPool
    var asked: Set<String> = []
  }

  private let source: TypeSource
  private let state: Mutex<State>

  init(_ source: TypeSource, _ pool: DescriptorPool) {
    self.source = source
    state = Mutex(State(pool: pool))
  }

  /// All that is known by now.
  var pool: DescriptorPool { state.withLock { $0.pool } }

  /// Asks for those that are not known. A server that does not know one either is no fault.
  /// Whether there is more now.
  @discardableResult
  func learn(_ names: some Sequence<String>) async -> Bool {
    if case .files = source { return false }
    var hasMore = false
    for name in names {
      let isNew = state.withLock { state in
        !name.isEmpty && state.pool.message(name) == nil
          && DescriptorPool.wellKnown?.message(name) == nil && state.asked.insert(name).inserted
      }
      guard isNew, let found = try? await source.pool(declaring: name) else { continue }
      state.withLock { state in
        var seen: Set<String> = []
        let files = (state.pool.files + found.files).filter {
          seen.insert($0.name ?? "").inserted
        }
        guard let merged = try? DescriptorPool(files: files) else { return }
        state.pool = merged
        hasMore = true
      }
    }
    return hasMore
  }

  /// An answer as JSON. An `Any` whose type nobody knows is shown by its bytes.
  func json(
    _ bytes: [UInt8], as type: MessageDescriptor, _ options: JSONOptions
  ) async throws -> String {
    var options = options
    while true {
      let unknown = UnknownTypes()
      options.types = pool
      options.unknownTypes = unknown
      let text = try JSONFormat.encode(wire: bytes, as: type, options)
      // What is packed in something unknown comes to light once that is known.
      guard await learn(unknown.names) else { return text }
    }
  }

  static func name(_ url: String) -> String { String(url.split(separator: "/").last ?? "") }

  /// The types that a request, as it is written, may pack; names that are none do no harm.
  static func names(in text: String, _ form: MessageForm) -> [String] {
    var names: [String] = []
    var rest = text[...]
    let (mark, end): (String, Character) = form == .json ? ("\"@type\"", "\"") : ("[", "]")
    while let found = rest.firstRange(of: mark) {
      rest = rest[found.upperBound...]
      if form == .json {
        rest = rest.drop { $0.isWhitespace || $0 == ":" }
        guard rest.first == end else { continue }
        rest = rest.dropFirst()
      }
      guard let close = rest.firstIndex(of: end) else { break }
      if rest[..<close].contains("/") { names.append(name(String(rest[..<close]))) }
      if form == .json { rest = rest[close...] }
    }
    return names
  }
}

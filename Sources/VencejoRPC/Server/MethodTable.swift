import Synchronization

/// Methods by the bytes of `:path`: no string is made to find one.
///
/// Open addressing over a power of two, filled once before the server starts.
struct MethodTable: Sendable {
  /// A class: every call holds one, and one reference is cheaper to hold than four.
  final class Entry: Sendable {
    let path: [UInt8]
    let method: ServerMethod
    let execution: HandlerExecution
    let takesOneRequest: Bool
    let isUnary: Bool
    /// The handler of a stream of requests starts with the first of them.
    let awaitsMessage: Bool
    /// Shared by the methods of a service.
    let limit: CallLimit?

    init(
      _ method: ServerMethod, _ execution: HandlerExecution, _ limit: CallLimit? = nil,
      awaitsMessage: Bool = false
    ) {
      self.limit = limit
      self.awaitsMessage = awaitsMessage
      path = Array(method.path.utf8)
      self.method = method
      self.execution = execution
      takesOneRequest = method.takesOneRequest
      isUnary = method.isUnary
    }
  }

  private var slots: [Entry?]
  private let mask: Int

  /// Throws the path that two services claim.
  init(_ services: [any Service]) throws(RPCError) {
    let entries = services.flatMap { service -> [Entry] in
      let limit = service.maxConcurrentCalls.map(CallLimit.init)
      return service.methods.map {
        Entry($0, service.execution, limit, awaitsMessage: service.startsWithFirstMessage)
      }
    }
    var capacity = 16
    while capacity < entries.count * 4 { capacity *= 2 }
    slots = Array(repeating: nil, count: capacity)
    mask = capacity - 1
    for entry in entries {
      var index = entry.path.withUnsafeBytes(Self.hash) & mask
      while let taken = slots[index] {
        if taken.path == entry.path {
          throw RPCError(.alreadyExists, "two services offer \(entry.method.path)")
        }
        index = (index + 1) & mask
      }
      slots[index] = entry
    }
  }

  func find(_ path: UnsafeRawBufferPointer) -> Entry? {
    var index = Self.hash(path) & mask
    while let entry = slots[index] {
      if path.equals(entry.path) { return entry }
      index = (index + 1) & mask
    }
    return nil
  }

  /// FNV-1a. A peer that makes paths collide only walks one probe sequence of ours: the
  /// table never grows with what peers send.
  private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes {
      hash ^= UInt64(byte)
      hash = hash &* 0x100_0000_01b3
    }
    return Int(truncatingIfNeeded: hash ^ hash >> 32)
  }
}

/// Counts the handlers that run, on any loop.
final class CallLimit: Sendable {
  private let running = Atomic<Int>(0)
  private let limit: Int

  init(_ limit: Int) { self.limit = max(limit, 0) }

  func begin() -> Bool {
    if running.add(1, ordering: .relaxed).newValue <= limit { return true }
    running.subtract(1, ordering: .relaxed)
    return false
  }

  func end() { running.subtract(1, ordering: .relaxed) }
}

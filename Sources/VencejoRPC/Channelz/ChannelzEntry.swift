import Glibc
import Synchronization
import VencejoHTTP2

/// What channelz shows of one channel, subchannel, server or socket. Whatever it shows holds
/// it; when that goes, it is shown no more.
final class ChannelzEntry: Sendable {
  typealias Connectivity = GRPCChannelz.ChannelConnectivityState.State
  typealias Severity = GRPCChannelz.ChannelTraceEvent.Severity

  enum Kind: Sendable {
    /// Of a program's, not of another channel.
    case channel
    case subchannel, server, listener, socket
  }

  struct Event: Sendable {
    let time: Int64
    let text: String
    let severity: Severity
  }

  private struct State {
    var connectivity = Connectivity.idle
    var events: [Event] = []
    var eventCount: Int64 = 0
    var children: [Int64: Kind] = [:]
  }

  /// Older events are forgotten.
  private static let maxEvents = 32

  let id: Int64
  let kind: Kind
  let name: String
  let created = ChannelzRegistry.now
  let calls = CallCounts()
  /// Nil but for a socket.
  let socket: SocketCounts?
  let parent: ChannelzEntry?
  private let state = Mutex(State())

  init(_ kind: Kind, _ name: String, parent: ChannelzEntry? = nil) {
    id = ChannelzRegistry.nextID
    self.kind = kind
    self.name = name
    self.parent = parent
    socket = kind == .socket ? SocketCounts() : nil
    ChannelzRegistry.add(self)
    parent?.state.withLock { $0.children[id] = kind }
    note("created")
  }

  deinit {
    ChannelzRegistry.remove(id)
    parent?.state.withLock { $0.children[id] = nil }
  }

  func note(_ text: String, _ severity: Severity = .ctInfo, _ connectivity: Connectivity? = nil) {
    let event = Event(time: ChannelzRegistry.now, text: text, severity: severity)
    state.withLock { state in
      if let connectivity { state.connectivity = connectivity }
      state.eventCount += 1
      if state.events.count == Self.maxEvents { state.events.removeFirst() }
      state.events.append(event)
    }
  }

  var connectivity: Connectivity { state.withLock { $0.connectivity } }
  var trace: (count: Int64, events: [Event]) {
    state.withLock { ($0.eventCount, $0.events) }
  }

  func children(_ kind: Kind) -> [ChannelzEntry] {
    let ids = state.withLock { $0.children.filter { $0.value == kind }.keys.sorted() }
    return ids.compactMap { ChannelzRegistry.entry($0, kind) }
  }
}

/// Calls of a channel or a server.
final class CallCounts: Sendable {
  private let begun = Atomic<Int64>(0)
  private let succeeded = Atomic<Int64>(0)
  private let failed = Atomic<Int64>(0)
  private let last = Atomic<Int64>(0)

  func begin() {
    begun.add(1, ordering: .relaxed)
    last.store(ChannelzRegistry.now, ordering: .relaxed)
  }

  func end(_ status: StatusCode) {
    if status == .ok {
      succeeded.add(1, ordering: .relaxed)
    } else {
      failed.add(1, ordering: .relaxed)
    }
  }

  /// `last` is nanoseconds since 1970; 0 without any.
  var values: (begun: Int64, succeeded: Int64, failed: Int64, last: Int64) {
    (
      begun.load(ordering: .relaxed), succeeded.load(ordering: .relaxed),
      failed.load(ordering: .relaxed), last.load(ordering: .relaxed)
    )
  }
}

/// Streams and messages of a connection.
final class SocketCounts: Sendable {
  struct Values: Sendable {
    var streams: Int64 = 0
    var succeeded: Int64 = 0
    var failed: Int64 = 0
    var sent: Int64 = 0
    var received: Int64 = 0
    /// Nanoseconds since 1970; 0 for never.
    var lastStream: Int64 = 0
    var lastSent: Int64 = 0
    var lastReceived: Int64 = 0
  }

  /// The connection's loop writes, and others look now and then.
  private let state = Mutex(Values())
  private let weakConnection = Mutex<WeakConnection?>(nil)

  private struct WeakConnection: Sendable {
    weak let connection: HTTP2Connection?
    let loop: EventLoop
    let local: SocketAddress
    let remote: SocketAddress
  }

  var values: Values { state.withLock { $0 } }

  func attach(_ connection: HTTP2Connection) {
    let weak = WeakConnection(
      connection: connection, loop: connection.loop, local: connection.localAddress,
      remote: connection.peerAddress)
    weakConnection.withLock { $0 = weak }
  }

  func begin() {
    state.withLock {
      $0.streams += 1
      $0.lastStream = ChannelzRegistry.now
    }
  }
  func end(_ regularly: Bool) {
    state.withLock { if regularly { $0.succeeded += 1 } else { $0.failed += 1 } }
  }
  func sent() {
    state.withLock {
      $0.sent += 1
      $0.lastSent = ChannelzRegistry.now
    }
  }
  func received() {
    state.withLock {
      $0.received += 1
      $0.lastReceived = ChannelzRegistry.now
    }
  }

  struct Insight: Sendable {
    var isServer = false
    var sendWindow = 0
    var receiveWindow = 0
    var keepalives = 0
    var cipher: String?
    var localCertificate: [UInt8]?
    var remoteCertificate: [UInt8]?
  }

  var addresses: (local: SocketAddress, remote: SocketAddress)? {
    weakConnection.withLock { $0 }.map { ($0.local, $0.remote) }
  }

  /// What only the connection's loop can tell; nil when it is gone.
  func insight() async -> Insight? {
    guard let weak = weakConnection.withLock({ $0 }) else { return nil }
    return await withUnsafeContinuation { continuation in
      let accepted = weak.loop.tryExecute {
        guard let connection = weak.connection else {
          return continuation.resume(returning: nil)
        }
        continuation.resume(
          returning: Insight(
            isServer: connection.isServer, sendWindow: connection.sendWindow,
            receiveWindow: connection.receiveWindow, keepalives: connection.keepalivesSent,
            cipher: connection.cipherSuite, localCertificate: connection.localCertificate,
            remoteCertificate: connection.remoteCertificate))
      }
      if !accepted { continuation.resume(returning: nil) }
    }
  }
}

/// All there is to be shown, by id.
enum ChannelzRegistry {
  private struct Weak: Sendable {
    weak let entry: ChannelzEntry?
    let kind: ChannelzEntry.Kind
  }

  private static let enabled = Atomic<Bool>(false)
  private static let lastID = Atomic<Int64>(0)
  private static let entries = Mutex<[Int64: Weak]>([:])

  /// Set once somebody wants to look, and never unset.
  static var isEnabled: Bool { enabled.load(ordering: .relaxed) }
  static func enable() { enabled.store(true, ordering: .relaxed) }

  static var nextID: Int64 { lastID.add(1, ordering: .relaxed).newValue }

  /// Nanoseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  static func add(_ entry: ChannelzEntry) {
    entries.withLock { $0[entry.id] = Weak(entry: entry, kind: entry.kind) }
  }

  static func remove(_ id: Int64) { entries.withLock { $0[id] = nil } }

  static func entry(_ id: Int64, _ kinds: ChannelzEntry.Kind...) -> ChannelzEntry? {
    entries.withLock { entries in
      guard let weak = entries[id], kinds.contains(weak.kind) else { return nil }
      return weak.entry
    }
  }

  /// In the order of ids, from one on; one more than `limit` tells that there are more.
  static func all(_ kind: ChannelzEntry.Kind, from: Int64, limit: Int) -> [ChannelzEntry] {
    let ids = entries.withLock { entries in
      entries.filter { $0.value.kind == kind && $0.key >= from }.keys.sorted()
    }
    var found: [ChannelzEntry] = []
    for id in ids where found.count <= limit {
      if let entry = entry(id, kind) { found.append(entry) }
    }
    return found
  }
}

extension HTTP2Connection {
  /// Has channelz show it below a server or a subchannel, for as long as it lives.
  func show(below parent: ChannelzEntry) {
    let entry = ChannelzEntry(.socket, "\(peerAddress)", parent: parent)
    entry.socket?.attach(self)
    companion = entry
  }
}

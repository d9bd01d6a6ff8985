/// What a connection offers its peer and what it puts up with. One value serves a
/// server's and a client's connections.
public struct ConnectionConfiguration: Sendable {
  /// Streams a peer may have open at once on a connection (server).
  public var maxConcurrentStreams = 1_000
  /// Bytes a peer may send on one stream before we `consume` any.
  public var initialStreamWindow = 256 << 10
  /// Bytes a peer may send on all streams of a connection before we `consume` any.
  public var initialConnectionWindow = 1 << 20
  /// Up to how many bytes a stream's window grows while the peer fills it within a round trip
  /// (the bandwidth-delay product, measured with PINGs); the connection's grows with it, to
  /// four times as much. At most `initialStreamWindow` leaves both as they are, as do Unix
  /// sockets.
  public var maxStreamWindow = 4 << 20
  /// The largest DATA payload we receive, from 16,384 to 16,777,215 bytes.
  public var maxFrameSize = 16_384
  /// Bytes of names and values, with 32 more for each field, past which a header
  /// list marks its stream (`HTTP2Stream.headerListOverflowed`). Past four times
  /// as much the stream is reset, past sixteen times the connection closes.
  public var maxHeaderListSize = 16 << 10
  /// HPACK table sizes are left at HTTP/2's 4,096 bytes.

  /// `streamDidDrain` is due when a stream's queue, having been above `highWaterMark`
  /// bytes, falls to `lowWaterMark`.
  public var highWaterMark = 64 << 10
  public var lowWaterMark = 16 << 10

  /// Bytes that may be queued on all streams of a connection before it is congested
  /// (`HTTP2Connection.isCongested`).
  public var maxQueuedBytes = 8 << 20

  /// How long a client waits for the TCP connection.
  public var connectTimeout: Duration = .seconds(20)
  /// How long the peer's preface and first SETTINGS may take.
  public var handshakeTimeout: Duration = .seconds(10)
  /// How long the peer's acknowledgement of our SETTINGS may take.
  public var settingsTimeout: Duration = .seconds(10)
  /// How long one header block may take from its first frame to its last.
  public var headersTimeout: Duration = .seconds(10)
  /// How long bytes may wait without progress: for the socket, or, once a stream's
  /// last message is queued, for its window.
  public var stalledSendTimeout: Duration = .seconds(60)
  /// Closes a connection gracefully when it had no stream for so long; nil never.
  public var idleTimeout: Duration?
  /// Closes a connection gracefully once it is so old, a tenth more or less so that clients
  /// which came together do not come back together; nil never.
  public var maxAge: Duration?
  /// How long after `maxAge` streams may still run; nil for ever.
  public var maxAgeGrace: Duration?
  /// After this much graceful shutdown what still runs is cut off; nil never.
  public var drainTimeout: Duration?

  /// Sends a PING after so long without a byte from the peer; nil never.
  public var keepaliveInterval: Duration?
  /// How long a keepalive PING may remain unanswered before the connection closes.
  public var keepaliveTimeout: Duration = .seconds(20)
  /// Whether keepalive PINGs go out while no stream is open.
  public var keepaliveWithoutStreams = false

  /// Streams a peer may reset (CVE-2023-44487): so many at once, so many more a second, and so
  /// many more for each stream that ends regularly. Clients that cancel most of what they begin
  /// are no attack, those that finish next to nothing are one. What a reset leaves running
  /// counts against `Server.Configuration.maxHandlersPerConnection` until it ends.
  public var receivedResetBurst = 2_000
  public var receivedResetRate = 200
  public var receivedResetsPerStream = 4
  /// Resets a peer may provoke us into (CVE-2025-8671).
  public var sentResetBurst = 100
  public var sentResetRate = 10
  /// PINGs, SETTINGS and empty DATA frames a peer may send while no
  /// HEADERS or DATA of ours flow.
  public var idleFrameBurst = 100
  public var idleFrameRate = 1
  /// Frames that may wait for a peer that does not read, beyond two for each stream.
  public var maxQueuedFrames = 1_000
  /// CONTINUATION frames of one header block.
  public var maxContinuations = 8

  /// The first stream's number (client, odd): for tests of what happens when numbers run out.
  package var firstStreamID: Int32 = 1

  /// The defaults, named in this type's members.
  public init() {}
}

/// Error codes of HTTP/2 frames (RFC 9113, section 7), and two of our own that
/// never travel.
public enum HTTP2Code {
  public static let noError: UInt32 = 0x0
  public static let protocolError: UInt32 = 0x1
  public static let internalError: UInt32 = 0x2
  public static let flowControlError: UInt32 = 0x3
  public static let settingsTimeout: UInt32 = 0x4
  public static let streamClosed: UInt32 = 0x5
  public static let frameSizeError: UInt32 = 0x6
  /// The peer has not processed the stream: it may be tried again. A client's
  /// streams above a GOAWAY's last id, and those never sent, close with it too.
  public static let refusedStream: UInt32 = 0x7
  public static let cancel: UInt32 = 0x8
  public static let compressionError: UInt32 = 0x9
  public static let connectError: UInt32 = 0xa
  public static let enhanceYourCalm: UInt32 = 0xb
  public static let inadequateSecurity: UInt32 = 0xc
  public static let http11Required: UInt32 = 0xd
  /// Local only: the connection went away under the stream.
  public static let connectionLost: UInt32 = 0xffff_ffff
}

/// What went wrong below the calls: with a socket, an address, or a peer that
/// does not keep to HTTP/2.
public struct HTTP2Error: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure a caller may want to tell apart.
  public enum Kind: Sendable, Hashable {
    case invalidAddress
    case addressInUse
    case connectFailed
    case connectTimedOut
    case system
    case connectionClosed
    case connectionShuttingDown
    case streamLimitReached
    case streamIDsExhausted
    case headersTooLarge
    case handshakeTimedOut
    case settingsTimedOut
    case keepaliveTimedOut
    case sendStalled
    case headersTimedOut
    case excessiveLoad
    case protocolViolation
    case goAway
    case loopUnavailable
    /// A certificate, a key or a handshake is no good.
    case tlsFailed
  }

  /// The kind of failure.
  public let kind: Kind
  /// One sentence for people.
  public let message: String
  /// `errno` where a system call failed, otherwise 0.
  public let systemError: Int32
  /// The HTTP/2 error code, where one was sent or received.
  public let code: UInt32

  /// Makes an error.
  public init(_ kind: Kind, _ message: String, systemError: Int32 = 0, code: UInt32 = 0) {
    self.kind = kind
    self.message = message
    self.systemError = systemError
    self.code = code
  }

  public var description: String { message }
}

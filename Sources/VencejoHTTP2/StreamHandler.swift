/// Receives what happens on one stream. Every call is on the connection's loop.
public protocol StreamHandler: AnyObject {
  /// One field, as it is decoded; the bytes live as long as the call.
  func stream(
    _ stream: HTTP2Stream, header name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)
  /// A whole block has arrived: request or response headers, or trailers.
  func stream(_ stream: HTTP2Stream, headersEndWith endStream: Bool)
  /// Bytes of the body; they live as long as the call. Give them back with
  /// `HTTP2Stream.consume` once they are dealt with.
  func stream(_ stream: HTTP2Stream, data: UnsafeRawBufferPointer)
  /// The peer has ended its side, after the last headers or data.
  func streamDidEnd(_ stream: HTTP2Stream)
  /// The queue, having been above the high-water mark, has fallen to the low one.
  func streamDidDrain(_ stream: HTTP2Stream)
  /// The last call, exactly once. 0 is a regular end; otherwise a code of RFC 9113
  /// or of `HTTP2Code`.
  func stream(_ stream: HTTP2Stream, closedWith code: UInt32)
}

/// Receives what happens on a connection. Every call is on the connection's loop.
public protocol ConnectionHandler: AnyObject {
  /// The peer's first SETTINGS have arrived.
  func connectionDidOpen(_ connection: HTTP2Connection)
  /// The peer accepts no stream above `lastStreamID`; ours above it close with
  /// `HTTP2Code.refusedStream`.
  func connection(
    _ connection: HTTP2Connection, didReceiveGoAway lastStreamID: Int32, code: UInt32)
  /// A stream may be opened again, where `canOpenStream` was false.
  func connectionCanOpenStreams(_ connection: HTTP2Connection)
  /// The last call, exactly once; nil after a regular end.
  func connectionDidClose(_ connection: HTTP2Connection, error: HTTP2Error?)
}

extension ConnectionHandler {
  public func connectionDidOpen(_ connection: HTTP2Connection) {}
  public func connection(
    _ connection: HTTP2Connection, didReceiveGoAway lastStreamID: Int32, code: UInt32
  ) {}
  public func connectionCanOpenStreams(_ connection: HTTP2Connection) {}
}

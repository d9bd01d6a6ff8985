public import VencejoCompression

/// What a client says of one call.
public struct CallOptions: Sendable {
  /// How long the call may take from now on; nil waits for ever. The server learns of it.
  public var timeout: Duration?
  public var metadata: Metadata
  /// Wait for a connection instead of failing with UNAVAILABLE while there is none (gRPC
  /// "Wait for Ready Semantics").
  public var waitForReady: Bool
  /// Compresses the request's messages; nil leaves it to the channel. A server that cannot
  /// read it answers UNIMPLEMENTED.
  public var compression: Compression?
  /// False sends the call's messages as they are, whatever the channel says.
  public var compressed: Bool
  /// Makes the call again when it fails before the server began to answer; nil leaves it to
  /// the channel.
  public var retryPolicy: RetryPolicy?
  /// Of one message, in bytes.
  public var maxReceiveMessageBytes: Int

  public init(
    timeout: Duration? = nil, metadata: Metadata = [:], waitForReady: Bool = false,
    compression: Compression? = nil, compressed: Bool = true, retryPolicy: RetryPolicy? = nil,
    maxReceiveMessageBytes: Int = 4 * 1024 * 1024
  ) {
    self.timeout = timeout
    self.metadata = metadata
    self.waitForReady = waitForReady
    self.compression = compression
    self.compressed = compressed
    self.retryPolicy = retryPolicy
    self.maxReceiveMessageBytes = maxReceiveMessageBytes
  }
}

public import VencejoCompression

/// What a client says of one call.
public struct CallOptions: Sendable {
  /// How long the call may take from now on; nil waits for ever. The server learns of it.
  public var timeout: Duration?
  public var metadata: Metadata
  /// Wait for a connection instead of failing with UNAVAILABLE while there is none (gRPC
  /// "Wait for Ready Semantics"); nil leaves it to the service config, and is false without.
  public var waitForReady: Bool?
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
  /// Of one message as it travels, in bytes; a longer one ends the call with
  /// RESOURCE_EXHAUSTED.
  public var maxSendMessageBytes: Int
  /// Metadata that says on whose behalf the call is made; nil leaves it to the channel.
  public var credentials: Credentials?

  /// Finds the metadata that says on whose behalf a call is made, an access token say. Called
  /// before each call with its path and its audience, `https://host/package.Service`. An error
  /// ends the call: an ``RPCError`` with its code, others with UNAVAILABLE.
  ///
  /// What it finds travels over TLS or within this machine only: over plain text to other
  /// hosts the call fails with UNAUTHENTICATED.
  public typealias Credentials =
    @Sendable (_ method: String, _ audience: String) async throws -> Metadata

  public init(
    timeout: Duration? = nil, metadata: Metadata = [:], waitForReady: Bool? = nil,
    compression: Compression? = nil, compressed: Bool = true, retryPolicy: RetryPolicy? = nil,
    maxReceiveMessageBytes: Int = 4 * 1024 * 1024, maxSendMessageBytes: Int = .max,
    credentials: Credentials? = nil
  ) {
    self.timeout = timeout
    self.metadata = metadata
    self.waitForReady = waitForReady
    self.compression = compression
    self.compressed = compressed
    self.retryPolicy = retryPolicy
    self.maxReceiveMessageBytes = maxReceiveMessageBytes
    self.maxSendMessageBytes = maxSendMessageBytes
    self.credentials = credentials
  }
}

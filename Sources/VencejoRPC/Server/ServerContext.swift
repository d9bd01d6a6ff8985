public import VencejoCompression
public import VencejoHTTP2

/// What a handler knows of its call, and what it can say beside its messages.
///
/// The handler's task is cancelled as soon as the client cancels, vanishes or the
/// deadline passes.
public struct ServerContext: Sendable {
  let call: ServerCall

  /// `/package.Service/Method`.
  public var method: String { call.path }
  /// The client's metadata, without the fields of the protocol itself.
  public var metadata: Metadata { call.metadata }
  /// What the client calls itself.
  public var userAgent: String? { call.userAgent }
  /// When the client stops waiting; nil when it never does.
  public var deadline: ContinuousClock.Instant? { call.deadline }
  /// Whether the one request message came compressed; false where requests stream
  /// (`RequestStream.Iterator.messageWasCompressed`).
  public var requestWasCompressed: Bool { call.requestWasCompressed }
  /// The other end of the connection.
  public var peer: SocketAddress { call.peer }
  /// Who the client is, by the certificate it showed; nil when it showed none
  /// (`ServerTLS.ClientCertificates`).
  public var peerIdentity: PeerIdentity? { call.peerIdentity }
  /// Which process of which user the client is, as the kernel says; nil but over Unix sockets.
  public var peerCredentials: PeerCredentials? { call.peerCredentials }
  /// The loop the connection lives on.
  public var loop: EventLoop { call.loop }

  /// Metadata that goes before the first message. Without effect once that has gone.
  public func setInitialMetadata(_ metadata: Metadata) { call.setInitialMetadata(metadata) }

  /// Sends the initial metadata now rather than with the first message.
  public func sendInitialMetadata(_ metadata: Metadata) {
    call.setInitialMetadata(metadata)
    call.sendInitialMetadataSoon()
  }

  /// Compresses the response's messages, where the client can read it. To be said before
  /// the first message and the initial metadata go.
  public func setResponseCompression(_ compression: Compression?) {
    call.setResponseCompression(compression)
  }

  /// Metadata that goes with a status OK; a thrown `RPCError` carries its own.
  public func setTrailingMetadata(_ metadata: Metadata) { call.setTrailingMetadata(metadata) }
}

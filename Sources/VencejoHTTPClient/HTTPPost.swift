/// A request to a server whose address somebody else chose.
public struct HTTPPost: Sendable {
  /// Checked by ``HTTPAddress``.
  public var address: HTTPAddress
  /// Names and values; none may hold a line break.
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  /// From the resolution of the name to the end of the response.
  public var timeout: Duration
  /// Machines it may reach.
  public var policy: NetworkPolicy

  public init(
    _ address: HTTPAddress, headers: [(name: String, value: String)], body: [UInt8],
    timeout: Duration = .seconds(10), policy: NetworkPolicy = NetworkPolicy()
  ) {
    self.address = address
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.policy = policy
  }
}

/// How a request ended.
public enum HTTPOutcome: Sendable, Hashable {
  /// The server's status, whatever it was; redirects are not followed.
  case status(Int)
  /// The name stands for machines that the policy keeps out.
  case forbidden
  /// No answer, and why.
  case failed(String)
}

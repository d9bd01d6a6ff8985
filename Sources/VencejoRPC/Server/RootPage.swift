import VencejoHTTP2

/// What a person finds who opens the server's address with an HTTP client: `GET /`, `HEAD /`
/// and `POST /` that are no gRPC calls are answered with a text (RFC 9110, section 9.3).
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class RootPage: @unchecked Sendable {
  let headers: HeaderList
  let body: [UInt8]

  init(_ text: String) {
    body = Array(text.utf8)
    headers = HeaderList([
      (":status", "200"), ("content-type", "text/plain; charset=utf-8"),
      ("content-length", "\(body.count)"),
    ])
  }

  static let text = """
    This port speaks gRPC over HTTP/2 (vencejo \(VencejoRPC.version)). Call it with a gRPC client;
    `vencejo list HOST:PORT` and other tools say what it offers where it has reflection.

    """
}

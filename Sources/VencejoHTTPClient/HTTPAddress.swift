import CCurl

/// An `http` or `https` URL without a user, as curl reads it, so that what is checked is what is
/// called.
public struct HTTPAddress: Sendable, Hashable {
  public let url: String
  public let isSecure: Bool

  /// Longest text that is looked at, in bytes.
  public static let limit = 2048

  /// Nil for what is no such URL.
  public init?(_ text: String) {
    guard text.utf8.count <= Self.limit, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
      let parts = curl_url()
    else { return nil }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, text, 0) == CURLUE_OK,
      let scheme = Self.part(parts, CURLUPART_SCHEME), scheme == "http" || scheme == "https",
      let host = Self.part(parts, CURLUPART_HOST), !host.isEmpty,
      Self.part(parts, CURLUPART_USER) == nil, Self.part(parts, CURLUPART_PASSWORD) == nil,
      Self.part(parts, CURLUPART_FRAGMENT) == nil, let url = Self.part(parts, CURLUPART_URL)
    else { return nil }
    self.url = url
    isSecure = scheme == "https"
  }

  private static func part(_ parts: OpaquePointer, _ what: CURLUPart) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, what, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }
}

public import VencejoRPC

/// What of metadata may be logged.
///
/// Credentials and bytes never are, nor are the keys a program adds.
public struct Redaction: Sendable {
  /// In the place of a value that is not shown.
  public static let mark = "[redacted]"

  private static let always: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key",
  ]

  private let keys: Set<String>

  /// `keys`, in any case, are redacted beside the usual ones.
  public init(keys: some Sequence<String> = []) {
    self.keys = Self.always.union(keys.map { $0.lowercased() })
  }

  public func isSecret(_ key: String) -> Bool {
    let key = key.lowercased()
    return key.hasSuffix("-bin") || keys.contains(key)
  }

  /// The metadata as fields of a log line, under `metadata.KEY`. Long values are cut.
  public func fields(_ metadata: Metadata) -> [(key: String, value: LogLine.Value)] {
    metadata.map { entry in
      guard !isSecret(entry.key), case .text(let text) = entry.value else {
        return ("metadata.\(entry.key)", .text(Self.mark))
      }
      return ("metadata.\(entry.key)", .text(text.count > 256 ? text.prefix(256) + "…" : text))
    }
  }
}

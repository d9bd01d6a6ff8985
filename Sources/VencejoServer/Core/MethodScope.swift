/// What an API key needs for a method, by the method's name.
enum MethodScope {
  /// Words that begin the names of methods that change nothing others could see.
  private static let reading = [
    "Get", "List", "BatchGet", "Search", "Subscribe", "Lookup", "Query", "Fetch", "Count",
    "Download", "Export",
  ]

  /// Whether a method, `/package.Service/Method`, only reads.
  static func reads(_ path: String) -> Bool {
    guard let method = path.split(separator: "/").last else { return false }
    return reading.contains { method.hasPrefix($0) }
  }

  /// The scope for a method; nil where no key is good for it.
  static func scope(_ path: String, isRead: Bool) -> String? {
    let service =
      path.hasPrefix("/vencejo.chat.v1.")
      ? "chat" : path.hasPrefix("/vencejo.record.v1.") ? "record" : nil
    return service.map { $0 + (isRead ? ".read" : ".write") }
  }
}

extension String {
  /// The scope that includes a reading one: who may write may look.
  var asWrite: String { hasSuffix(".read") ? String(dropLast(5)) + ".write" : self }
}

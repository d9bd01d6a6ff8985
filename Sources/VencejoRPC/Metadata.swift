/// The metadata of a call: an ordered multimap of ASCII keys (gRPC over HTTP2,
/// "Requests", Custom-Metadata).
///
/// Keys are lower case; those that end in `-bin` carry bytes, all others printable
/// ASCII. Keys of the protocol itself (`grpc-…`, `:…`, `content-type`, `te`) are
/// refused.
public struct Metadata: Sendable, Hashable {
  public enum Content: Sendable, Hashable {
    case text(String)
    case bytes([UInt8])
  }

  public struct Entry: Sendable, Hashable {
    public let key: String
    public let value: Content
  }

  private var entries: [Entry] = []

  public init() {}

  /// Every value of a key whose values are text, in order.
  public subscript(all key: String) -> [String] {
    entries.compactMap {
      if $0.key == key, case .text(let text) = $0.value { text } else { nil }
    }
  }

  /// The first text of a key. Setting replaces every value of the key; nil removes them.
  /// A key or text that may not be sent is refused when the call starts.
  public subscript(_ key: String) -> String? {
    get {
      for entry in entries where entry.key == key {
        if case .text(let text) = entry.value { return text }
      }
      return nil
    }
    set {
      entries.removeAll { $0.key == key }
      if let newValue { add(newValue, for: key) }
    }
  }

  /// The first bytes of a `-bin` key.
  public subscript(binary key: String) -> [UInt8]? {
    for entry in entries where entry.key == key {
      if case .bytes(let bytes) = entry.value { return bytes }
    }
    return nil
  }

  /// Every value of a `-bin` key, in order.
  public subscript(allBinary key: String) -> [[UInt8]] {
    entries.compactMap {
      if $0.key == key, case .bytes(let bytes) = $0.value { bytes } else { nil }
    }
  }

  public mutating func add(_ text: String, for key: String) {
    entries.append(Entry(key: key, value: .text(text)))
  }

  public mutating func add(_ bytes: [UInt8], for key: String) {
    entries.append(Entry(key: key, value: .bytes(bytes)))
  }

  public mutating func append(contentsOf other: Metadata) {
    entries.append(contentsOf: other.entries)
  }
}

extension Metadata: RandomAccessCollection {
  public var startIndex: Int { entries.startIndex }
  public var endIndex: Int { entries.endIndex }
  public subscript(position: Int) -> Entry { entries[position] }
}

extension Metadata: ExpressibleByDictionaryLiteral {
  public typealias Key = String
  public typealias Value = String

  public init(dictionaryLiteral elements: (String, String)...) {
    for (key, value) in elements { add(value, for: key) }
  }
}

extension Metadata {
  /// What is wrong with the first entry that may not be sent, or nil.
  public var problem: String? {
    for entry in entries {
      if let problem = Self.problem(with: entry) { return problem }
    }
    return nil
  }

  private static func problem(with entry: Entry) -> String? {
    let key = entry.key.utf8
    guard !key.isEmpty, key.allSatisfy(isKeyByte) else {
      return "metadata key '\(entry.key)' has other characters than a-z 0-9 _ - ."
    }
    if entry.key.hasPrefix("grpc-") || reserved.contains(entry.key) {
      return "metadata key '\(entry.key)' is reserved"
    }
    switch entry.value {
    case .text(let text):
      if entry.key.hasSuffix("-bin") { return "metadata key '\(entry.key)' takes bytes" }
      guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 <= 0x7E }) else {
        return "the value of metadata key '\(entry.key)' is not printable ASCII"
      }
      // HTTP strips white space at the ends, which would change the value on its way.
      if text.utf8.first == 0x20 || text.utf8.last == 0x20 {
        return "the value of metadata key '\(entry.key)' starts or ends with a space"
      }
    case .bytes:
      if !entry.key.hasSuffix("-bin") { return "metadata key '\(entry.key)' takes text" }
    }
    return nil
  }

  private static let reserved: Set<String> = [
    "content-type", "te", "user-agent", "connection", "host", "transfer-encoding", "upgrade",
    "keep-alive", "proxy-connection",
  ]

  private static func isKeyByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// The fields as they travel.
  var fields: [(String, String)] {
    entries.map { entry in
      switch entry.value {
      case .text(let text): (entry.key, text)
      case .bytes(let bytes): (entry.key, Base64.encode(bytes))
      }
    }
  }

  /// Takes one field as it came. A `-bin` field may hold a comma-separated list; one that
  /// is not base64 makes the answer false.
  mutating func receive(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    let key = String(decoding: name, as: UTF8.self)
    guard key.hasSuffix("-bin") else {
      // White space at the ends may be stripped (PROTOCOL-HTTP2, ASCII-Value).
      add(String(decoding: Self.trimmed(value[...]), as: UTF8.self), for: key)
      return true
    }
    for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      guard let bytes = Base64.decode(Self.trimmed(part)) else { return false }
      add(bytes, for: key)
    }
    return true
  }

  private static func trimmed(_ part: Slice<UnsafeRawBufferPointer>) -> Slice<
    UnsafeRawBufferPointer
  > {
    var part = part
    while let first = part.first, first == 0x20 || first == 0x09 { part = part.dropFirst() }
    while let last = part.last, last == 0x20 || last == 0x09 { part = part.dropLast() }
    return part
  }
}

extension Metadata {
  /// The bytes that a base64 text stands for, as in `-bin` fields; nil when it is none.
  public static func bytes(fromBase64 text: String) -> [UInt8]? { Base64.decode(text.utf8) }
}

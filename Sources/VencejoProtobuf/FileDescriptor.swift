/// A `.proto` file, embedded in the code generated from it.
public struct FileDescriptor: Sendable {
  /// The file's path as imports spell it, for example `vencejo/chat/v1/chat.proto`.
  public let path: String
  private let base64: StaticString
  private let imports: @Sendable () -> [FileDescriptor]

  /// For generated code: the base64 of a `FileDescriptorProto`, and the files it imports.
  public init(
    path: String, base64: StaticString, dependencies: @escaping @Sendable () -> [FileDescriptor]
  ) {
    self.path = path
    self.base64 = base64
    self.imports = dependencies
  }

  /// The files this one imports.
  public var dependencies: [FileDescriptor] { imports() }

  /// The encoded `google.protobuf.FileDescriptorProto`, without comments. Decoded from its
  /// embedded form at each call.
  public var serialized: [UInt8] {
    base64.withUTF8Buffer { Self.decode($0) }
  }

  /// Decodes standard base64 (RFC 4648, section 4); the text is our own generator's.
  private static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var bits: UInt32 = 0
    var count = 0
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character &- UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character &- UInt8(ascii: "a") &+ 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character &- UInt8(ascii: "0") &+ 52
      case UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "/"): value = 63
      default: continue
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }
}

/// A service of a generated file.
public struct ServiceDescriptor: Sendable {
  /// The full protobuf name, for example `vencejo.chat.v1.ChatService`.
  public let fullName: String
  /// The file that declares the service.
  public let file: FileDescriptor

  /// For generated code.
  public init(fullName: String, file: FileDescriptor) {
    self.fullName = fullName
    self.file = file
  }
}

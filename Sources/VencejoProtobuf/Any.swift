// Conveniences of google.protobuf.Any.

extension Google.AnyMessage {
  /// Packs a message, under `type.googleapis.com/` and its full name.
  public init<M: Message>(packing message: M) {
    self.init(
      typeUrl: "type.googleapis.com/" + M.messageName, value: message.serializedBytes())
  }

  /// The full name of the packed message's type: what follows the last slash.
  public var typeName: String {
    String(typeUrl.utf8.split(separator: UInt8(ascii: "/")).last.map(Substring.init) ?? "")
  }

  /// Whether a message of the type is packed.
  public func holds<M: Message>(_: M.Type) -> Bool { typeName == M.messageName }

  /// The packed message, or nil when it is of another type.
  public func unpack<M: Message>(_: M.Type) throws(DecodingError) -> M? {
    guard typeName == M.messageName else { return nil }
    return try M(serializedBytes: value)
  }
}

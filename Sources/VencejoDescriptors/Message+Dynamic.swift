public import VencejoProtobuf

// From generated code to dynamic messages and back.

extension Message {
  /// A message of generated code with the fields of a dynamic one of the same type. Throws when
  /// it is of another type.
  public init(_ message: DynamicMessage) throws(DescriptorError) {
    guard message.descriptor.fullName == Self.messageName else {
      throw .unknownType(message.descriptor.fullName, usedBy: Self.messageName)
    }
    do {
      self = try Self(partialSerializedBytes: message.serializedBytes())
    } catch {
      throw .malformed(error)
    }
  }
}

extension DynamicMessage {
  /// The dynamic form of a message of generated code, of the type its code embeds, or of `types`
  /// when they have it. Throws for extensions the type knows when they are malformed.
  public init<M: Message>(
    _ message: M, types: DescriptorPool? = nil
  ) throws(DescriptorError) {
    let type = try DescriptorPool.descriptor(of: M.self, in: types)
    do {
      try self.init(type, serializedBytes: message.serializedBytes(), partial: true)
    } catch {
      throw .malformed(error)
    }
  }
}

extension Message {
  /// Removes the fields its type does not know, here and in all sub-messages; extensions its file
  /// or `types` know are kept.
  public mutating func discardUnknownFields(
    types: DescriptorPool? = nil
  ) throws(DescriptorError) {
    var message = try DynamicMessage(self, types: types)
    message.discardUnknownFields()
    self = try Self(message)
  }
}

extension Google.AnyMessage {
  /// Packs a dynamic message, under `type.googleapis.com/` and its full name.
  public init(packing message: DynamicMessage) {
    self.init(
      typeUrl: "type.googleapis.com/" + message.descriptor.fullName,
      value: message.serializedBytes())
  }

  /// The packed message, of a type that `types` or the well-known types have; nil when they do
  /// not. Throws when it is malformed.
  public func unpack(types: DescriptorPool) throws(DecodingError) -> DynamicMessage? {
    guard let type = DescriptorPool.packedType(typeUrl, near: types, types: nil) else { return nil }
    return try DynamicMessage(type, serializedBytes: value)
  }
}

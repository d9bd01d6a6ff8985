public import VencejoDescriptors
public import VencejoProtobuf

/// Messages as JSON (protobuf.dev, "ProtoJSON Format"), by descriptor.
public enum JSONFormat {
  /// The JSON of an encoded message.
  public static func encode(
    wire bytes: [UInt8], as type: MessageDescriptor, _ options: JSONOptions = .init()
  ) throws(JSONError) -> String {
    do throws(JSONFault) {
      return try JSONPrinter.print(bytes, as: type, options)
    } catch {
      throw error.error()
    }
  }

  /// The JSON of a message. Throws for what JSON cannot express: a `Timestamp` outside of the
  /// years 1 to 9999, an `Any` of an unknown type.
  public static func encode(
    _ message: DynamicMessage, _ options: JSONOptions = .init()
  ) throws(JSONError) -> String {
    try encode(wire: message.serializedBytes(), as: message.descriptor, options)
  }

  /// The message a JSON text describes, encoded.
  public static func decode(
    _ json: String, as type: MessageDescriptor, _ options: JSONOptions = .init()
  ) throws(JSONError) -> [UInt8] {
    do throws(JSONFault) {
      return try JSONTranscoder.transcode(json, as: type, options)
    } catch {
      let (line, column) = place(of: error.offset, in: json)
      throw error.error(line: line, column: column)
    }
  }

  /// The message a JSON text describes.
  public static func message(
    _ json: String, as type: MessageDescriptor, _ options: JSONOptions = .init()
  ) throws(JSONError) -> DynamicMessage {
    let bytes = try decode(json, as: type, options)
    do {
      return try DynamicMessage(type, transcoded: bytes)
    } catch {
      throw JSONError(message: "\(error)", path: "$")
    }
  }

  /// The line and the character in it, both from 1.
  static func place(of offset: Int, in text: String) -> (line: Int, column: Int) {
    let before = text.utf8.prefix(offset)
    let line = before.count { $0 == 0x0A } + 1
    let start = before.lastIndex(of: 0x0A).map { before.index(after: $0) } ?? before.startIndex
    return (line, String(decoding: before[start...], as: UTF8.self).count + 1)
  }
}

extension Message {
  /// The message as JSON.
  public func jsonString(_ options: JSONOptions = .init()) throws(JSONError) -> String {
    try JSONFormat.encode(
      wire: serializedBytes(), as: Self.messageDescriptor(in: options.types), options)
  }

  /// The message a JSON text describes.
  public init(jsonString: String, _ options: JSONOptions = .init()) throws(JSONError) {
    let type = try Self.messageDescriptor(in: options.types)
    let bytes = try JSONFormat.decode(jsonString, as: type, options)
    do {
      self = try Self(serializedBytes: bytes)
    } catch {
      throw JSONError(message: "\(error)", path: "$")
    }
  }

  /// The message's descriptor: from `types` when it is there, else from the file embedded in
  /// its code, which knows no extensions but its own.
  public static func messageDescriptor(
    in types: DescriptorPool? = nil
  ) throws(JSONError) -> MessageDescriptor {
    do throws(DescriptorError) {
      return try DescriptorPool.descriptor(of: Self.self, in: types)
    } catch {
      throw JSONError(message: "\(error)", path: "$")
    }
  }
}

public import VencejoDescriptors
public import VencejoProtobuf

/// Why a text could not be read.
public struct TextError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public var message: String
  /// The line in the text, from 1; 0 when it is not about a place.
  public var line = 0
  /// The character in the line, from 1.
  public var column = 0

  init(message: String, line: Int = 0, column: Int = 0) {
    self.message = message
    self.line = line
    self.column = column
  }

  public var description: String { line == 0 ? message : "\(line):\(column): \(message)" }
}

/// How text format is read and written.
public struct TextOptions: Sendable {
  /// Writing: all in one line.
  public var singleLine = false
  /// Writing: fields the type does not know, by number.
  public var unknownFields = true
  /// Writing: `Any` as the message within, when its type is known.
  public var expandAny = true
  /// Reading: names nobody knows are skipped, not refused.
  public var ignoreUnknown = false
  /// Where the types packed in `Any` are found, besides the message's own pool and the
  /// well-known types. For a generated message it may also know extensions: when it has the
  /// message's type, that is used.
  public var types: DescriptorPool?

  /// The defaults.
  public init() {}
}

/// Messages as text (protobuf.dev, "Text Format Language Specification"), by descriptor.
public enum TextFormat {
  /// The text of a message. Fields its type does not know are written by their numbers; no
  /// reader takes those.
  public static func encode(_ message: DynamicMessage, _ options: TextOptions = .init()) -> String {
    var printer = TextPrinter(options)
    printer.print(message)
    return printer.out.string()
  }

  /// The text of an encoded message.
  public static func encode(
    wire bytes: [UInt8], as type: MessageDescriptor, _ options: TextOptions = .init()
  ) throws(TextError) -> String {
    try TextPrinter.print(bytes, as: type, options)
  }

  /// The message a text describes.
  public static func message(
    _ text: String, as type: MessageDescriptor, _ options: TextOptions = .init()
  ) throws(TextError) -> DynamicMessage {
    let bytes = try wire(text, as: type, options)
    do throws(DecodingError) {
      return try DynamicMessage(type, transcoded: bytes)
    } catch {
      throw TextError(message: "\(error)")
    }
  }

  /// The message a text describes, encoded.
  static func wire(
    _ text: String, as type: MessageDescriptor, _ options: TextOptions
  ) throws(TextError) -> [UInt8] {
    var reader = TextReader(text, options: options)
    do throws(TextFault) {
      try reader.readAll(type)
    } catch {
      let before = text.utf8.prefix(error.offset)
      let start = before.lastIndex(of: 0x0A).map { before.index(after: $0) } ?? before.startIndex
      throw TextError(
        message: error.message, line: before.count { $0 == 0x0A } + 1,
        column: String(decoding: before[start...], as: UTF8.self).count + 1)
    }
    return reader.out.bytes()
  }
}

extension Message {
  /// The message in text format.
  public func textString(_ options: TextOptions = .init()) throws(TextError) -> String {
    try TextFormat.encode(
      wire: serializedBytes(), as: Self.textDescriptor(options.types), options)
  }

  /// The message a text describes. Throws also when a required field is missing.
  public init(textString: String, _ options: TextOptions = .init()) throws(TextError) {
    let bytes = try TextFormat.wire(
      textString, as: Self.textDescriptor(options.types), options)
    do {
      self = try Self(serializedBytes: bytes)
    } catch {
      throw TextError(message: "\(error)")
    }
  }

  private static func textDescriptor(_ types: DescriptorPool?) throws(TextError)
    -> MessageDescriptor
  {
    do throws(DescriptorError) {
      return try DescriptorPool.descriptor(of: Self.self, in: types)
    } catch {
      throw TextError(message: "\(error)")
    }
  }
}

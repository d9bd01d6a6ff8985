/// A protobuf message: a value with a wire form.
///
/// Generated code conforms to it. Equality and hashing of large messages compare their
/// deterministic encodings, so a NaN equals itself and 0.0 differs from -0.0 there.
public protocol Message: Hashable, Sendable {
  /// A message with every field at its default.
  init()

  /// The full protobuf name, for example `vencejo.chat.v1.Chat`.
  static var messageName: String { get }

  /// The file that declares the message.
  static var fileDescriptor: FileDescriptor { get }

  /// Fields this version of the message does not know; they survive a round trip.
  var unknownFields: UnknownFields { get set }

  /// The path of the first required field that is not set, here or in sub-messages, for
  /// example `orders[2].id` or `[shop.gift].name`; nil when there is none. Of the extensions only
  /// those that the message's own file declares are looked into.
  var missingRequiredField: String? { get }

  /// Merges fields from the reader up to the end of its current message. Errors stay in
  /// the reader. For generated code.
  mutating func decode(from reader: inout WireReader)

  /// Writes all fields, the last one first. For generated code.
  func encode(to writer: inout WireWriter)
}

extension Message {
  public var missingRequiredField: String? { nil }

  /// Decodes a message, without keeping or copying the input. Throws when the input is
  /// malformed, or a required field missing.
  public init(serializedBytes bytes: UnsafeRawBufferPointer) throws(DecodingError) {
    self.init()
    try merge(serializedBytes: bytes)
    try checkRequired()
  }

  /// Decodes a message. Throws when the input is malformed, or a required field missing.
  public init(serializedBytes bytes: [UInt8]) throws(DecodingError) {
    self.init()
    try merge(serializedBytes: bytes)
    try checkRequired()
  }

  /// Decodes a message that may lack required fields.
  public init(partialSerializedBytes bytes: [UInt8]) throws(DecodingError) {
    self.init()
    try merge(serializedBytes: bytes)
  }

  /// Throws when a required field is not set, here or in sub-messages. Decoding checks it;
  /// encoding does not: call it before sending what you made yourself.
  public func checkRequired() throws(DecodingError) {
    if let path = missingRequiredField {
      throw DecodingError(kind: .missingRequired, offset: 0, path: path)
    }
  }

  /// Merges an encoded message into this one: singular fields are replaced, sub-messages
  /// merged, repeated fields and maps extended. After an error the message holds what came
  /// before it. Required fields may be missing.
  public mutating func merge(serializedBytes bytes: UnsafeRawBufferPointer) throws(DecodingError) {
    var reader = WireReader(bytes)
    decode(from: &reader)
    if let error = reader.error { throw error }
  }

  /// Merges an encoded message into this one.
  public mutating func merge(serializedBytes bytes: [UInt8]) throws(DecodingError) {
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      decode(from: &reader)
      return reader.error
    }
    if let error { throw error }
  }

  /// Merges another message into this one, like its encoding. Throws when it nests more deeply
  /// than messages may.
  public mutating func merge(_ other: Self) throws(DecodingError) {
    try merge(serializedBytes: other.serializedBytes())
  }

  /// The encoded message. Map entries come in no particular order unless `deterministic`
  /// sorts them by key.
  public func serializedBytes(deterministic: Bool = false) -> [UInt8] {
    serializedBytes(reservingPrefix: 0, deterministic: deterministic)
  }

  // The underscored attribute says what no other does: without it this module compiles a copy of
  // these functions for each message it declares. If it vanishes, no more than time is lost.

  /// `count` zero bytes, to be overwritten with a frame's header, then the encoded message.
  @_semantics("optimize.sil.specialize.generic.never")
  public func serializedBytes(reservingPrefix count: Int, deterministic: Bool = false) -> [UInt8] {
    withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { scratch in
      var writer = WireWriter(scratch: scratch, deterministic: deterministic)
      encode(to: &writer)
      return writer.bytes(reservingPrefix: count)
    }
  }

  /// Equality of the deterministic encodings.
  public static func == (left: Self, right: Self) -> Bool { left.isEncodedLike(right) }

  /// Hashes the deterministic encoding.
  public func hash(into hasher: inout Hasher) { hashEncoding(into: &hasher) }

  /// The same, of one value. Without it the compiler makes one for each message.
  @_semantics("optimize.sil.specialize.generic.never")
  public var hashValue: Int {
    var hasher = Hasher()
    hash(into: &hasher)
    return hasher.finalize()
  }

  /// Whether both have the same deterministic encoding. For generated code.
  @_semantics("optimize.sil.specialize.generic.never")
  public func isEncodedLike(_ other: Self) -> Bool {
    serializedBytes(deterministic: true) == other.serializedBytes(deterministic: true)
  }

  /// Hashes the deterministic encoding. For generated code.
  @_semantics("optimize.sil.specialize.generic.never")
  public func hashEncoding(into hasher: inout Hasher) {
    hasher.combine(serializedBytes(deterministic: true))
  }
}

/// Why bytes could not be decoded as a message.
public struct DecodingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of malformed input.
  public enum Kind: String, Hashable, Sendable {
    /// A field or length reaches beyond the end of the message.
    case truncated
    /// A varint longer than ten bytes.
    case malformedVarint
    /// A tag with field number 0, a reserved wire type, or more than 32 bits.
    case invalidTag
    /// An end-group tag that closes no group, or another one.
    case unexpectedEndGroup
    /// A group that is not closed where its message ends.
    case unterminatedGroup
    /// A string field that is not UTF-8.
    case invalidUTF8
    /// More than ``WireReader/maximumDepth`` messages or groups within each other.
    case depthExceeded
    /// Packed fixed-width values whose length is not a multiple of their width.
    case misalignedPacked
    /// A required field that is not there: see ``DecodingError/path``.
    case missingRequired
  }

  /// What is wrong.
  public var kind: Kind
  /// Bytes from the beginning of the input to where decoding stopped.
  public var offset: Int

  /// Which required field is missing, for example `orders[2].id`.
  public var path: String?

  /// Makes an error of a kind at an offset in bytes.
  public init(kind: Kind, offset: Int, path: String? = nil) {
    self.kind = kind
    self.offset = offset
    self.path = path
  }

  public var description: String {
    if let path { return "the required field \(path) is missing" }
    return "malformed protobuf: \(kind.rawValue) at byte \(offset)"
  }
}

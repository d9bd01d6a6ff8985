/// A protobuf enum: open, so any `Int32` is a value, known or not.
public protocol Enumeration: RawRepresentable, Hashable, Sendable where RawValue == Int32 {
  /// Makes a value; every number is one.
  init(rawValue: Int32)
  /// The full protobuf name, for example `vencejo.chat.v1.MemberRole`.
  static var enumName: String { get }
}

/// An enum whose fields take no number it does not name: proto2's, and those of editions that
/// say so. Other numbers from the wire stay unknown fields.
public protocol ClosedEnumeration: Enumeration {
  /// Whether a value has the number.
  static func isKnown(_ number: Int32) -> Bool
  /// The first value in the file, which is the default.
  static var defaultValue: Self { get }
}

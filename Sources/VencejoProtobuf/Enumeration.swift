/// A protobuf enum: open, so any `Int32` is a value, known or not.
public protocol Enumeration: RawRepresentable, Hashable, Sendable where RawValue == Int32 {
  /// Makes a value; every number is one.
  init(rawValue: Int32)
  /// The full protobuf name, for example `vencejo.chat.v1.MemberRole`.
  static var enumName: String { get }
}

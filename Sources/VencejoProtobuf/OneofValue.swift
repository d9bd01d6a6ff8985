/// The value of a oneof: which of its fields is set, and to what. For generated code.
///
/// In place of `Hashable, Sendable`: Swift 6.3 loses the conformance to `Swift::Sendable` where a
/// type beside it has the name `Sendable`, module selector or not.
public protocol OneofValue: Hashable, Sendable {}

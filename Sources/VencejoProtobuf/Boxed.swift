/// A value on the heap, copied when it is changed while shared. Generated code keeps the
/// fields of large and of recursive messages in one, so copying such a message costs a
/// retain.
@frozen
public struct Boxed<Value: Sendable>: Sendable {
  // @unchecked: `value` only changes through `Boxed.value`, which first makes sure that
  // nobody else holds this object.
  @usableFromInline
  final class Storage: @unchecked Sendable {
    // Uniqueness already gives exclusive access; the runtime's check would repeat it.
    @exclusivity(unchecked)
    @usableFromInline
    var value: Value

    @inlinable
    init(_ value: Value) { self.value = value }
  }

  @usableFromInline
  var storage: Storage

  /// Boxes a value.
  @inlinable
  public init(_ value: Value) { storage = Storage(value) }

  /// The value; a change first copies it when the box is shared.
  @inlinable
  public var value: Value {
    _read { yield storage.value }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
      yield &storage.value
    }
  }

  /// Whether both are the same object, so certainly equal.
  @inlinable
  public static func === (left: Boxed, right: Boxed) -> Bool { left.storage === right.storage }
}

/// A value on the heap, copied when it is changed while shared. Generated code keeps the
/// fields of large and of recursive messages in one, so copying such a message costs a
/// retain.
//
// @unchecked: the buffer's element only changes through `value`, which first makes sure that
// nobody else holds the buffer.
@frozen
public struct Boxed<Value: Sendable>: @unchecked Sendable {
  // A ManagedBuffer because the address of its element can be had: through a stored property
  // the compiler copies the value, a retain per field, before it calls a method of it.
  @usableFromInline
  final class Storage: ManagedBuffer<Void, Value> {
    @inlinable
    deinit {
      _ = withUnsafeMutablePointerToElements { $0.deinitialize(count: 1) }
    }
  }

  @usableFromInline
  var storage: ManagedBuffer<Void, Value>

  /// Boxes a value.
  @inlinable
  public init(_ value: Value) {
    storage = Storage.create(minimumCapacity: 1) { _ in }
    storage.withUnsafeMutablePointerToElements { $0.initialize(to: value) }
  }

  /// The value; a change first copies it when the box is shared.
  @inlinable
  public var value: Value {
    unsafeAddress {
      UnsafePointer(storage.withUnsafeMutablePointerToElements { $0 })
    }
    unsafeMutableAddress {
      if !isKnownUniquelyReferenced(&storage) { self = Boxed(value) }
      return storage.withUnsafeMutablePointerToElements { $0 }
    }
  }

  /// Whether both are the same object, so certainly equal.
  @inlinable
  public static func === (left: Boxed, right: Boxed) -> Bool { left.storage === right.storage }
}

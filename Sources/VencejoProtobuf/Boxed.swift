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
      if !isKnownUniquelyReferenced(&storage) { separate() }
      return storage.withUnsafeMutablePointerToElements { $0 }
    }
  }

  // Once per type of value: in line it would be in every accessor, with a retain for every field.
  @inlinable
  @inline(never)
  mutating func separate() { self = Boxed(value) }

  /// The value, to be read where it is.
  @inlinable
  public var lent: Lent<Value> {
    unsafeAddress {
      // A Lent is laid out as the value it holds.
      UnsafeRawPointer(storage.withUnsafeMutablePointerToElements { $0 })
        .assumingMemoryBound(to: Lent<Value>.self)
    }
  }

  /// Whether both are the same object, so certainly equal.
  @inlinable
  public static func === (left: Boxed, right: Boxed) -> Bool { left.storage === right.storage }
}

/// A value that stays where it is while it is read. For generated code.
//
// Not copyable, because of a copyable value in memory the compiler makes a copy, with a retain
// for each of its fields, before it calls a function with it.
@frozen
public struct Lent<Value>: ~Copyable {
  /// What is lent.
  public let value: Value

  @inlinable
  init(_ value: Value) { self.value = value }

  /// Lends the elements of a list, the last one first.
  @inlinable
  @inline(__always)
  static func forEachReversed(_ list: [Value], _ body: (borrowing Lent<Value>) -> Void) {
    list.withUnsafeBufferPointer { buffer in
      guard let start = UnsafeRawPointer(buffer.baseAddress) else { return }
      // A Lent is laid out as the value it holds.
      let elements = start.assumingMemoryBound(to: Lent<Value>.self)
      var index = buffer.count
      while index > 0 {
        index &-= 1
        body(elements[index])
      }
    }
  }

  /// The index of the first element the body is true of.
  @inlinable
  @inline(__always)
  static func firstIndex(_ list: [Value], where body: (borrowing Lent<Value>) -> Bool) -> Int? {
    list.withUnsafeBufferPointer { buffer in
      guard let start = UnsafeRawPointer(buffer.baseAddress) else { return nil }
      let elements = start.assumingMemoryBound(to: Lent<Value>.self)
      for index in 0..<buffer.count where body(elements[index]) { return index }
      return nil
    }
  }
}

import Synchronization
public import VencejoProtobuf

/// Descriptors that do not fit together.
public enum DescriptorError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A field or method refers to a type none of the files declares.
  case unknownType(String, usedBy: String)
  /// The embedded descriptor cannot be decoded.
  case malformed(DecodingError)
  /// A field cannot be what its descriptor says: why.
  case invalid(field: String, String)

  public var description: String {
    switch self {
    case .unknownType(let name, let user): "\(user) refers to \(name), which is nowhere declared"
    case .malformed(let error): "malformed descriptor: \(error)"
    case .invalid(let field, let reason): "\(field) \(reason)"
    }
  }
}

/// Message, enum and service types made from file descriptors: embedded in generated code, or
/// loaded at run time, as from a server's reflection. Immutable.
public final class DescriptorPool: Sendable {
  package struct MessageInfo: Sendable {
    package let proto: Google.DescriptorProto
    package let fullName: String
    let features: Features
    package let wellKnown: WellKnown?
    /// In the file's order.
    package var fields: [FieldInfo] = []
    /// Extensions too.
    var byNumber: [Int32: FieldInfo] = [:]
    /// Both spellings: original and JSON's; extensions by their full names in brackets.
    var byName: [String: FieldInfo] = [:]
    /// By the index of the oneof.
    package var oneofs: [Int32: [FieldInfo]] = [:]
    package var required: [FieldInfo] = []
    var isMapEntry: Bool { proto.options?.mapEntry == true }
    var isMessageSet: Bool { proto.options?.messageSetWireFormat == true }
  }

  /// A class, so that passing one on costs one retain.
  package final class FieldInfo: Sendable {
    package let proto: Google.FieldDescriptorProto
    package let number: Int32
    package let name: String
    package let jsonName: String
    package let kind: Google.FieldDescriptorProto.TypeEnum
    /// The index of the message or enum.
    let type: Int
    package let isRepeated: Bool
    package let isMap: Bool
    package let isPacked: Bool
    package let hasPresence: Bool
    package let isRequired: Bool
    /// Whether the message stands between group tags.
    package let isGroup: Bool
    package let checksUTF8: Bool
    package let oneof: Int32?
    /// In which text format names it: of a group-like field its type's.
    package let textName: String
    /// What the file gives with `[default = x]`.
    let explicitDefault: DynamicValue?
    let isExtension: Bool
    let tag: UInt32
    /// Whether null is a value of the type, in JSON: of `Value` and `NullValue`.
    let takesNull: Bool
    /// Whether the type takes no number it does not name.
    let isClosed: Bool
    /// Whether a list may stand in one run.
    let isPackable: Bool

    init(
      _ proto: Google.FieldDescriptorProto, _ kind: Google.FieldDescriptorProto.TypeEnum,
      _ number: Int32, type: Int, features: Features, scope: String, isMap: Bool,
      typeName: String, enumeration: DescriptorPool.EnumInfo?, inMessageSet: Bool
    ) {
      let isExtension = proto.extendee != nil
      let isMessage = kind == .message || kind == .group
      let own = proto.name ?? ""
      let fullName = scope.isEmpty ? own : "\(scope).\(own)"
      self.proto = proto
      self.number = number
      name = isExtension ? "[\(fullName)]" : own
      jsonName = isExtension ? "[\(fullName)]" : proto.jsonName ?? lowerCamel(own)
      self.kind = isMessage ? .message : kind
      self.type = type
      isRepeated = proto.label == .repeated
      self.isMap = isMap
      hasPresence = proto.label != .repeated && features.presence != .implicit
      isRequired = features.presence == .required
      isGroup = isMessage && features.delimited && !isMap
      checksUTF8 = features.checksUTF8
      self.isExtension = isExtension
      let wireType: UInt32 =
        switch kind {
        case .double, .fixed64, .sfixed64: 1
        case .message, .group: features.delimited && !isMap ? 3 : 2
        case .string, .bytes: 2
        case .float, .fixed32, .sfixed32: 5
        default: 0
        }
      tag = UInt32(truncatingIfNeeded: number) << 3 | wireType
      takesNull =
        isMessage && typeName == "google.protobuf.Value"
        || enumeration?.fullName == "google.protobuf.NullValue"
      isClosed = enumeration?.isClosed ?? false
      isPackable = proto.label == .repeated && ![.string, .bytes].contains(kind) && !isMessage
      isPacked = isPackable && features.packed
      oneof = proto.oneofIndex
      // "Group-like": named by its type's name in lower case, which is declared beside it.
      let last = typeName.split(separator: ".").last.map(String.init) ?? ""
      let beside = typeName == (scope.isEmpty ? last : "\(scope).\(last)")
      // An extension of a MessageSet is named by its type, when that declares it.
      let isItem = inMessageSet && isMessage && proto.label != .repeated && typeName == scope
      textName =
        isItem
        ? "[\(typeName)]"
        : isExtension
          ? "[\(fullName)]" : isGroup && last.lowercased() == own && beside ? last : own
      explicitDefault = DynamicValue(default: proto, kind, enumeration: enumeration)
    }
  }

  package struct EnumInfo: Sendable {
    package let proto: Google.EnumDescriptorProto
    package let fullName: String
    let isClosed: Bool
    var byName: [String: Int32] = [:]
    var byNumber: [Int32: String] = [:]
  }

  /// The files, as given, each once.
  public let files: [Google.FileDescriptorProto]
  package let messages: [MessageInfo]
  /// What reads and writes messages looks into; by the same index.
  package let tables: [MessageTable]
  package let enums: [EnumInfo]
  package let enumTables: [EnumTable]
  private let messageIndex: [String: Int]
  private let enumIndex: [String: Int]
  private let serviceIndex: [String: ServiceType]
  /// The services in the order of their files, by full name.
  public let serviceNames: [String]

  /// Links files, in any order; all files they import must be among them, unless nothing of
  /// an import is used.
  public init(files: [Google.FileDescriptorProto]) throws(DescriptorError) {
    var builder = DescriptorPoolBuilder()
    for file in files { builder.add(file) }
    try builder.link()
    self.files = builder.files
    messages = builder.messages
    tables = builder.messages.map { MessageTable($0) }
    enums = builder.enums
    enumTables = builder.enums.map { EnumTable($0) }
    messageIndex = builder.messageIndex
    enumIndex = builder.enumIndex
    serviceIndex = builder.services
    serviceNames = builder.serviceNames
  }

  /// Links embedded files and all they import.
  public convenience init(_ files: FileDescriptor...) throws(DescriptorError) {
    var protos: [Google.FileDescriptorProto] = []
    var seen: Set<String> = []
    var queue = files
    while let file = queue.popLast() {
      guard seen.insert(file.path).inserted else { continue }
      do {
        protos.append(try Google.FileDescriptorProto(serializedBytes: file.serialized))
      } catch {
        throw .malformed(error)
      }
      queue += file.dependencies
    }
    try self.init(files: protos)
  }

  /// Links a `google.protobuf.FileDescriptorSet`, as `protoc --include_imports
  /// --descriptor_set_out` writes it.
  public convenience init(serializedFileSet bytes: [UInt8]) throws(DescriptorError) {
    let set: Google.FileDescriptorSet
    do {
      set = try Google.FileDescriptorSet(serializedBytes: bytes)
    } catch {
      throw .malformed(error)
    }
    try self.init(files: set.file)
  }

  private static let generated = Mutex<[String: DescriptorPool]>([:])

  /// The pool of a generated message's file and its imports; made once per file.
  public static func generated<M: Message>(for _: M.Type) throws(DescriptorError) -> DescriptorPool
  {
    let file = M.fileDescriptor
    if let pool = generated.withLock({ $0[file.path] }) { return pool }
    let pool = try DescriptorPool(file)
    generated.withLock { $0[file.path] = pool }
    return pool
  }

  /// The well-known types, for `Any` in messages whose files do not import what is packed.
  package static let wellKnown: DescriptorPool? = try? DescriptorPool(
    Google.timestampProto, Google.durationProto, Google.fieldMaskProto, Google.anyProto,
    Google.emptyProto, Google.structProto, Google.wrappersProto)

  /// The message with a full name, without a leading dot.
  public func message(_ fullName: String) -> MessageDescriptor? {
    messageIndex[fullName].map { MessageDescriptor(pool: self, index: $0) }
  }

  /// The enum with a full name.
  public func enumeration(_ fullName: String) -> EnumDescriptor? {
    enumIndex[fullName].map { EnumDescriptor(pool: self, index: $0) }
  }

  /// The service with a full name.
  public func service(_ fullName: String) -> ServiceType? { serviceIndex[fullName] }

  /// The names of all messages, sorted.
  public var messageNames: [String] { messageIndex.keys.sorted() }
}

/// A service and its methods.
public struct ServiceType: Sendable {
  /// One rpc.
  public struct Method: Sendable {
    /// Its name in the file, for example `SendMessage`.
    public let name: String
    /// Its HTTP/2 path, for example `/vencejo.chat.v1.ChatService/SendMessage`.
    public let path: String
    /// The full name of the request's type.
    public let input: String
    /// The full name of the response's type.
    public let output: String
    /// Whether the client sends a stream.
    public let clientStreaming: Bool
    /// Whether the server sends a stream.
    public let serverStreaming: Bool
  }

  /// For example `vencejo.chat.v1.ChatService`.
  public let fullName: String
  /// In the file's order.
  public let methods: [Method]

  /// The method with a name.
  public func method(_ name: String) -> Method? { methods.first { $0.name == name } }
}

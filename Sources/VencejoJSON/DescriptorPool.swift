import Synchronization
public import VencejoProtobuf

/// Descriptors that do not fit together.
public enum DescriptorError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A field or method refers to a type none of the files declares.
  case unknownType(String, usedBy: String)
  /// The embedded descriptor cannot be decoded.
  case malformed(DecodingError)

  public var description: String {
    switch self {
    case .unknownType(let name, let user): "\(user) refers to \(name), which is nowhere declared"
    case .malformed(let error): "malformed descriptor: \(error)"
    }
  }
}

/// Message, enum and service types made from file descriptors: embedded in generated code, or
/// loaded at run time, as from a server's reflection. Immutable.
public final class DescriptorPool: Sendable {
  struct MessageInfo: Sendable {
    let proto: Google.DescriptorProto
    let fullName: String
    let isProto3: Bool
    let wellKnown: WellKnown?
    var fields: [FieldInfo] = []
    var byNumber: [Int32: Int] = [:]
    /// Both spellings: original and JSON's.
    var byName: [String: Int] = [:]
    var isMapEntry: Bool { proto.options?.mapEntry == true }
  }

  struct FieldInfo: Sendable {
    let proto: Google.FieldDescriptorProto
    let number: Int32
    let name: String
    let jsonName: String
    let kind: Google.FieldDescriptorProto.TypeEnum
    /// The index of the message or enum.
    let type: Int
    let isRepeated: Bool
    let isMap: Bool
    let isPacked: Bool
    let hasPresence: Bool
    let oneof: Int32?
  }

  struct EnumInfo: Sendable {
    let proto: Google.EnumDescriptorProto
    let fullName: String
    var byName: [String: Int32] = [:]
    var byNumber: [Int32: String] = [:]
  }

  /// The files, as given, each once.
  public let files: [Google.FileDescriptorProto]
  let messages: [MessageInfo]
  let enums: [EnumInfo]
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
    enums = builder.enums
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
  static let wellKnown: DescriptorPool? = try? DescriptorPool(
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

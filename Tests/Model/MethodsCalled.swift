import Synchronization
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

/// The methods that rounds have called, whichever they are.
final class MethodsCalled: RPCObserver {
  static let shared = MethodsCalled()
  private let names = Mutex<Set<String>>([])

  func callBegan(_ call: CallReport) { names.withLock { _ = $0.insert(call.method) } }

  /// Those of the messenger's that no round has called.
  func missing() throws -> [String] {
    let called = names.withLock(\.self)
    var missing: [String] = []
    for file in [Auth.authProto, Chat.chatProto] {
      let descriptor = try Google.FileDescriptorProto(serializedBytes: file.serialized)
      for service in descriptor.service {
        for method in service.method {
          let path =
            "/\(descriptor.package ?? "").\(service.name ?? "")/\(method.name ?? "")"
          if !called.contains(path) { missing.append(path) }
        }
      }
    }
    return missing
  }
}

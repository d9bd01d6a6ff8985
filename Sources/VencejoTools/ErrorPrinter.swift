import VencejoDescriptors
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoText

/// Shows a status with its details on standard error.
struct ErrorPrinter {
  let output: Output
  /// Types of the server, for details that are not of google.rpc.
  let types: DescriptorPool?

  func print(_ error: RPCError) {
    output.complain(VisibleText.clean("error: \(error)"))
    for detail in error.details { output.complain(VisibleText.clean("  \(describe(detail))")) }
    if let hint = hint(error) { output.complain("hint: \(hint)") }
  }

  private func describe(_ any: Google.AnyMessage) -> String {
    let name = String(any.typeUrl.split(separator: "/").last ?? "")
    for pool in [types, Self.standard].compactMap({ $0 }) {
      if let type = pool.message(name),
        let json = try? JSONFormat.encode(wire: any.value, as: type, .init())
      {
        return "\(name) \(json)"
      }
    }
    return "\(any.typeUrl) (\(any.value.count) bytes)"
  }

  private static let standard = try? DescriptorPool(GoogleRPC.errorDetailsProto)

  private func hint(_ error: RPCError) -> String? {
    switch (error.code, error.origin) {
    // A server that shows a certificate is there.
    case (.unavailable, .transport) where !error.message.contains("TLS: "):
      "is the server running, and is this its address?"
    case (.unauthenticated, .remote):
      "send a token: -H 'authorization: Bearer TOKEN', from SignIn's answer"
    default: nil
    }
  }

  /// The status as a message. Of details of types nobody knows JSON shows the bytes.
  static func status(_ error: RPCError, _ types: DescriptorPool, _ form: MessageForm) -> String {
    var status = GoogleRPC.Status()
    status.code = Int32(truncatingIfNeeded: error.code.rawValue)
    status.message = error.message
    status.details = error.details
    let files = types.files + (standard?.files ?? [])
    var seen: Set<String> = []
    let known = try? DescriptorPool(files: files.filter { seen.insert($0.name ?? "").inserted })
    switch form {
    case .json:
      var options = JSONOptions()
      options.types = known ?? types
      options.unknownTypes = UnknownTypes()
      if let text = try? status.jsonString(options) { return text }
      // Bytes that are no message of their type.
      status.details = status.details.filter { detail in
        var one = GoogleRPC.Status()
        one.details = [detail]
        return (try? one.jsonString(options)) != nil
      }
      return (try? status.jsonString(options)) ?? "{}"
    case .text:
      var options = TextOptions()
      options.types = known ?? types
      return VisibleText.clean((try? status.textString(options)) ?? "", keepingLines: true)
    }
  }
}

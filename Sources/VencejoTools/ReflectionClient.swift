import VencejoProtobuf
import VencejoRPC

/// Asks a server what it offers, in whichever version of the reflection protocol it
/// speaks.
struct ReflectionClient {
  let channel: Channel
  let options: CallOptions
  /// Those to try, in order.
  var versions = ["v1", "v1alpha"]

  func services() async throws(RPCError) -> [String] {
    let response = try await ask(.listServices("*"))
    guard case .listServicesResponse(let list) = response else { throw unexpected(response) }
    return list.service.map(\.name).sorted()
  }

  /// The file that declares a symbol and every file it needs.
  func files(declaring symbol: String) async throws(RPCError) -> [Google.FileDescriptorProto] {
    var files: [String: Google.FileDescriptorProto] = [:]
    var wanted: Set<String> = []
    func take(_ response: GRPCReflection.ServerReflectionResponse.MessageResponse?) throws(RPCError)
    {
      guard case .fileDescriptorResponse(let answer) = response else { throw unexpected(response) }
      for bytes in answer.fileDescriptorProto {
        guard let file = try? Google.FileDescriptorProto(serializedBytes: bytes),
          let name = file.name
        else {
          throw RPCError(.internalError, "the server's reflection answers with no descriptor")
        }
        files[name] = file
        wanted.formUnion(file.dependency)
      }
    }
    try take(await ask(.fileContainingSymbol(symbol)))
    // Some servers send the one file asked for only.
    while let name = wanted.first(where: { files[$0] == nil }) {
      try take(await ask(.fileByFilename(name)))
      guard files[name] != nil else {
        throw RPCError(.internalError, "the server's reflection does not know its own \(name)")
      }
    }
    return Array(files.values)
  }

  private func ask(
    _ question: GRPCReflection.ServerReflectionRequest.MessageRequest
  ) async throws(RPCError) -> GRPCReflection.ServerReflectionResponse.MessageResponse? {
    var missing: RPCError?
    for version in versions {
      do {
        return try await ask(question, version)
      } catch  where error.code == .unimplemented {
        missing = missing ?? error
      }
    }
    throw missing ?? RPCError(.unimplemented)
  }

  private func ask(
    _ question: GRPCReflection.ServerReflectionRequest.MessageRequest, _ version: String
  ) async throws(RPCError) -> GRPCReflection.ServerReflectionResponse.MessageResponse? {
    let call:
      BidirectionalCall<
        GRPCReflection.ServerReflectionRequest, GRPCReflection.ServerReflectionResponse
      > = channel.bidirectional(
        "/grpc.reflection.\(version).ServerReflection/ServerReflectionInfo", options)
    // A server without reflection ends the call before it took the question; its status
    // tells more than the failed write.
    try? await call.send(.init(messageRequest: question))
    call.finish()
    var answer: GRPCReflection.ServerReflectionResponse?
    for try await response in call { answer = answer ?? response }
    return answer?.messageResponse
  }

  private func unexpected(
    _ response: GRPCReflection.ServerReflectionResponse.MessageResponse?
  ) -> RPCError {
    if case .errorResponse(let error) = response {
      return RPCError(
        StatusCode(rawValue: Int(error.errorCode)), error.errorMessage, origin: .remote)
    }
    return RPCError(.internalError, "the server's reflection answers another question")
  }
}

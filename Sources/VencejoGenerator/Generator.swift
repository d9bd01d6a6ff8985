public import VencejoProtobuf

/// Turns descriptors into Swift source; pure.
public enum Generator {
  /// Answers protoc. A mistake of the user is reported in the response's `error`.
  public static func respond(
    to request: Google.CodeGeneratorRequest
  ) -> Google.CodeGeneratorResponse {
    var response = Google.CodeGeneratorResponse()
    response.supportedFeatures = UInt64(
      Google.CodeGeneratorResponse.Feature.proto3Optional.rawValue
        | Google.CodeGeneratorResponse.Feature.supportsEditions.rawValue)
    response.minimumEdition = Google.Edition.editionProto2.rawValue
    response.maximumEdition = Google.Edition.edition2024.rawValue
    do {
      let options = try GeneratorOptions(parameter: request.parameter ?? "")
      response.file = try files(for: request, options: options)
    } catch {
      response.error = error.description
    }
    return response
  }

  /// The Swift files: `<path>.pb.swift` for each file, `<path>.grpc.swift` for stubs alone. Folders become dots, as SwiftPM wants
  /// each file name of a module to be different.
  static func files(
    for request: Google.CodeGeneratorRequest, options: GeneratorOptions
  ) throws(GeneratorError) -> [Google.CodeGeneratorResponse.File] {
    let types = TypeIndex(request, options: options)
    var namespaces: Set<String> = []
    var result: [Google.CodeGeneratorResponse.File] = []
    for path in request.fileToGenerate {
      guard let file = request.protoFile.first(where: { $0.name == path }) else {
        throw GeneratorError("protoc did not describe \(path)")
      }
      if !options.messages && file.service.isEmpty { continue }
      let place = Place(file, isGenerated: true, options: options)
      let emitter = try FileEmitter(
        file, in: request, options: options, types: types,
        declaresNamespace: options.messages && namespaces.insert(place.namespace).inserted)
      var output = Google.CodeGeneratorResponse.File()
      output.name =
        options.fileNames.stem(of: path) + (options.messages ? ".pb.swift" : ".grpc.swift")
      output.content = try emitter.source()
      result.append(output)
    }
    return result
  }
}

extension GeneratorOptions.FileNames {
  /// The name of a file's code without what follows the first dot of its kind.
  func stem(of path: String) -> String {
    let bare = path.hasSuffix(".proto") ? String(path.dropLast(6)) : path
    let parts = bare.split(separator: "/")
    switch self {
    case .dots: return parts.joined(separator: ".")
    case .path: return parts.joined(separator: "/")
    case .base: return parts.last.map(String.init) ?? bare
    }
  }
}

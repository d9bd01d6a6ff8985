import Glibc
import VencejoDescriptors
import VencejoProtobuf
import VencejoRPC

/// Keeps the types that a command learned of in files: `--protoset-out` and `--proto-out-dir`.
enum TypesOut {
  static let options: [ArgumentList.Option] = [
    .init("protoset-out", value: true), .init("proto-out-dir", value: true),
  ]

  static let help = """
      --protoset-out FILE  also write the types, all those they need included, to a file that
                           --protoset reads
      --proto-out-dir DIR  also write them as .proto files below a folder
    """

  /// What the symbols need, where the arguments ask for it; without symbols that of all services.
  static func write(
    _ symbols: [String], of source: TypeSource, _ arguments: ArgumentList
  ) async throws {
    guard arguments.has("protoset-out") || arguments.has("proto-out-dir") else { return }
    var symbols = symbols
    if symbols.isEmpty { symbols = try await source.services() }
    var seen: Set<String> = []
    var set = Google.FileDescriptorSet()
    if case .files(let pool) = source, symbols.isEmpty { set.file = pool.files }
    for symbol in symbols {
      let symbol = symbol.split(separator: "/").joined(separator: ".")
      let pool: DescriptorPool
      do {
        pool = try await source.pool(declaring: symbol)
      } catch let error as RPCError {
        guard error.code == .notFound, let (service, _) = DescribedMethod.split(symbol) else {
          throw error
        }
        pool = try await source.pool(declaring: service)
      }
      set.file += pool.files.filter { seen.insert($0.name ?? "").inserted }
    }
    if let path = arguments["protoset-out"] {
      try ProtoFiles.write(set.serializedBytes(), to: path)
    }
    if let folder = arguments["proto-out-dir"] { try write(set.file, below: folder) }
  }

  private static func write(
    _ files: [Google.FileDescriptorProto], below folder: String
  ) throws {
    let pool = try? DescriptorPool(files: files)
    for file in files {
      let name = file.name ?? ""
      let parts = name.split(separator: "/", omittingEmptySubsequences: false)
      // The names come from a server: none may lead out of the folder.
      guard !parts.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }),
        !name.utf8.contains(0)
      else { throw ArgumentList.Fault("a file named '\(name)' is not written") }
      var path = folder
      makeFolder(path)
      for part in parts.dropLast() {
        path += "/" + part
        makeFolder(path)
      }
      let text = ProtoFilePrinter.text(of: file, pool)
      try ProtoFiles.write(Array(text.utf8), to: "\(folder)/\(name)")
    }
  }

  /// One that cannot be made is missed by what is written next.
  private static func makeFolder(_ path: String) { mkdir(path, 0o777) }
}

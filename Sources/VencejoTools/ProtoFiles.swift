import Glibc

/// What `vencejo proto` reads and writes.
enum ProtoFiles {
  private static func fault(_ what: String) -> ArgumentList.Fault {
    ArgumentList.Fault("\(what): \(String(cString: strerror(errno)))")
  }

  /// All of a file, or of standard input for nil and `-`.
  static func read(_ path: String?) throws(ArgumentList.Fault) -> [UInt8] {
    guard let path, path != "-" else { return try readAll(STDIN_FILENO, "standard input") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw fault(path) }
    defer { close(descriptor) }
    return try readAll(descriptor, path)
  }

  private static func readAll(
    _ descriptor: Int32, _ name: String
  ) throws(ArgumentList.Fault) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count == 0 { return bytes }
      if count > 0 {
        bytes += chunk[..<count]
      } else if errno != EINTR {
        throw fault(name)
      }
    }
  }

  /// To a file, or to standard output for nil and `-`.
  static func write(
    _ bytes: [UInt8], to path: String?, appending: Bool = false
  ) throws(ArgumentList.Fault) {
    guard let path, path != "-" else {
      return try writeAll(bytes, STDOUT_FILENO, "standard output")
    }
    let descriptor = open(
      path, O_WRONLY | O_CREAT | (appending ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw fault(path) }
    defer { close(descriptor) }
    try writeAll(bytes, descriptor, path)
  }

  private static func writeAll(
    _ bytes: [UInt8], _ descriptor: Int32, _ name: String
  ) throws(ArgumentList.Fault) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw fault(name)
      }
    }
  }

  /// A set of descriptors of .proto files and all they import, made by protoc.
  static func compile(
    _ protos: [String], includes: [String]
  ) throws(ArgumentList.Fault) -> [UInt8] {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw fault("pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    let words =
      ["protoc", "--include_imports", "--descriptor_set_out=/dev/stdout"]
      + (includes.isEmpty ? ["."] : includes).map { "-I\($0)" } + protos
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process: pid_t = 0
    let status = posix_spawnp(&process, "protoc", &actions, nil, &arguments, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard status == 0 else {
      throw ArgumentList.Fault(
        status == ENOENT
          ? "--proto needs protoc: install protobuf-compiler"
          : "protoc: \(String(cString: strerror(status)))")
    }
    let bytes = try readAll(ends[0], "protoc")
    var result: Int32 = 0
    while waitpid(process, &result, 0) < 0 && errno == EINTR {}
    guard result == 0 else { throw ArgumentList.Fault("protoc found mistakes, see above") }
    return bytes
  }
}

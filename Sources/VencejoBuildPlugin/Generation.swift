import Foundation
import PackagePlugin

/// What protoc is to make of the `.proto` files of one target. Both plugins share this file.
///
/// No configuration is needed. A file `vencejo.options` beside the target's sources may hold,
/// one a line: options of the generator such as `namespace=Greetings`, and `include=DIR` for each
/// folder imports are looked for in besides the target's own, from the package's top. `#` begins
/// a comment.
struct Generation {
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  let target: SwiftSourceModuleTarget
  /// The `.proto` files, and their paths from the target's folder, as imports spell them.
  let protos: [URL]
  let paths: [String]
  let optionsFile: URL?
  private var options: [String]
  private var includes: [String]

  /// Nil for a target without `.proto` files. Files that the target excludes, as it must when no
  /// plugin of the build takes them, count only with `includingExcluded`.
  init?(_ target: any Target, in package: Package, includingExcluded: Bool) throws {
    guard let target = target as? SwiftSourceModuleTarget else { return nil }
    let root = target.directoryURL.standardizedFileURL.path
    let found =
      includingExcluded
      ? FileManager.default.enumerator(at: target.directoryURL, includingPropertiesForKeys: nil)?
        .compactMap { $0 as? URL } ?? []
      : target.sourceFiles(withSuffix: ".proto").map(\.url)
    let protos = found.filter { $0.pathExtension == "proto" }.sorted { $0.path < $1.path }
    if protos.isEmpty { return nil }
    self.target = target
    self.protos = protos
    paths = protos.map { String($0.standardizedFileURL.path.dropFirst(root.count + 1)) }
    options = ["module=\(target.moduleName)"]
    includes = [root]
    let file = target.directoryURL.appending(component: "vencejo.options")
    guard FileManager.default.fileExists(atPath: file.path) else {
      optionsFile = nil
      return
    }
    optionsFile = file
    for line in try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isNewline) {
      let text = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
      if text.hasPrefix("include=") {
        let path = String(text.dropFirst("include=".count))
        includes.append(URL(filePath: path, relativeTo: package.directoryURL).path)
      } else if !text.isEmpty {
        options.append(text)
      }
    }
  }

  /// The files that come out in a folder: one for each `.proto`, folders as dots.
  func outputs(in folder: URL) -> [URL] {
    paths.map { path in
      let name = path.dropLast(".proto".count).replacing("/", with: ".")
      return folder.appending(component: "\(name).pb.swift")
    }
  }

  /// protoc's arguments.
  func arguments(plugin: URL, output: URL) -> [String] {
    ["--plugin=protoc-gen-vencejo=\(plugin.path)", "--vencejo_out=\(output.path)"]
      // Names of files are what `outputs` says: an option for them would go amiss.
      + (options + ["names=dots"]).map { "--vencejo_opt=\($0)" }
      + includes.map { "-I\($0)" } + paths
  }

  /// protoc on this machine: what `PROTOC_PATH` names, or the first in `PATH`.
  static func protoc() throws -> URL {
    let environment = ProcessInfo.processInfo.environment
    if let path = environment["PROTOC_PATH"], !path.isEmpty {
      guard FileManager.default.isExecutableFile(atPath: path) else {
        throw Fault(description: "PROTOC_PATH names no program: \(path)")
      }
      return URL(filePath: path)
    }
    for folder in (environment["PATH"] ?? "/usr/bin").split(separator: ":") {
      let path = "\(folder)/protoc"
      if FileManager.default.isExecutableFile(atPath: path) { return URL(filePath: path) }
    }
    throw Fault(
      description: "protoc is missing, which reads .proto files. On Debian and Ubuntu: "
        + "apt-get install protobuf-compiler. One that is not in PATH is named by PROTOC_PATH.")
  }
}

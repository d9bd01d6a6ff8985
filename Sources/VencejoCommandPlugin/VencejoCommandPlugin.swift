import Foundation
import PackagePlugin

/// `swift package generate-protobuf`: writes the Swift code of `.proto` files beside them, into
/// the folder `Generated` of their target, to be committed.
@main
struct VencejoCommandPlugin: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) async throws {
    var extractor = ArgumentExtractor(arguments)
    let names = extractor.extractOption(named: "target")
    if let unknown = extractor.remainingArguments.first {
      throw Generation.Fault(
        description: "unknown argument '\(unknown)'. Usage: swift package "
          + "--allow-writing-to-package-directory generate-protobuf [--target NAME]…")
    }
    let targets =
      names.isEmpty ? context.package.targets : try context.package.targets(named: names)
    let plugin = try context.tool(named: "protoc-gen-vencejo").url
    let protoc = try Generation.protoc()
    var isNothing = true
    for target in targets {
      guard
        let generation = try Generation(target, in: context.package, includingExcluded: true)
      else { continue }
      isNothing = false
      let output = target.directoryURL.appending(component: "Generated")
      try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
      try run(protoc, generation.arguments(plugin: plugin, output: output))
      for file in generation.outputs(in: output) { print("wrote \(file.path)") }
    }
    if isNothing {
      let place = names.isEmpty ? "no target" : names.joined(separator: ", ")
      throw Generation.Fault(description: "\(place) has .proto files")
    }
  }

  private func run(_ program: URL, _ arguments: [String]) throws {
    let process = try Process.run(program, arguments: arguments)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Generation.Fault(description: "protoc found mistakes, see above")
    }
  }
}

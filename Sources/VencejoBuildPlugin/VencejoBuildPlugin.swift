import Foundation
import PackagePlugin

/// Makes Swift code of a target's `.proto` files at each build in which they have changed.
@main
struct VencejoBuildPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
    guard
      let generation = try Generation(
        target, in: context.package, includingExcluded: false)
    else {
      Diagnostics.warning("\(target.name) has no .proto files")
      return []
    }
    let plugin = try context.tool(named: "protoc-gen-vencejo").url
    let output = context.pluginWorkDirectoryURL
    return [
      .buildCommand(
        displayName: "Generating Swift code of \(target.name)'s .proto files",
        executable: try Generation.protoc(),
        arguments: generation.arguments(plugin: plugin, output: output),
        inputFiles: generation.protos + [plugin] + (generation.optionsFile.map { [$0] } ?? []),
        outputFiles: generation.outputs(in: output))
    ]
  }
}

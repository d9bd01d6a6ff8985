import Glibc
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoHTTP2
import VencejoJSON
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// Data folders, tokens and exports of earlier versions, in Tests/Golden: whoever comes later has
/// to open them. `Scripts/golden NAME` adds those of today.
@Suite struct GoldenTests {
  private static let folder: String = {
    var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    parts.removeLast(2)
    return parts.joined(separator: "/") + "/Golden"
  }()

  /// Tokens are honoured for 14 days: the tests live a day after the folders were made.
  private static let made: Int64 = 1_800_000_000_000_000
  private static let later = made + 86_400_000_000

  private static let versions: [String] = {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }()

  @Test func thereAreSome() { #expect(!Self.versions.isEmpty) }

  @Test(arguments: versions) func laterVersionsOpenIt(_ name: String) async throws {
    let folder = "\(Self.folder)/\(name)"
    let facts = try lines("\(folder)/facts.txt")
    let tokens = try lines("\(folder)/tokens.txt")
    try #require(tokens.count == 2)
    try await withWorld { configuration in
      Self.copy("\(folder)/data", to: configuration.directory)
      configuration.store.clock = { Self.later }
    } _: { world in
      let ana = try await world.signIn("ana")
      let told = try await GoldenFacts.tell(world, ana, tokens[0], tokens[1])
      #expect(told == facts)
    }
  }

  /// Each line is a message, as ListMessages has it.
  @Test(arguments: versions) func exportsCanBeRead(_ name: String) async throws {
    let exported = try lines("\(Self.folder)/\(name)/export.ndjson").map {
      try Chat.Message(jsonString: $0)
    }
    let facts = try lines("\(Self.folder)/\(name)/facts.txt")
    let told = exported.map(GoldenFacts.line)
    #expect(told.count > 3)
    #expect(facts.filter { told.contains($0) } == told)
  }

  /// What today's version has to leave behind. Only Scripts/golden runs it.
  @Test(.enabled(if: getenv("VENCEJO_GOLDEN") != nil)) func make() async throws {
    let name = try #require(getenv("VENCEJO_GOLDEN").map { String(cString: $0) })
    let folder = "\(Self.folder)/\(name)"
    for part in ["", "/\(name)", "/\(name)/data"] { mkdir(Self.folder + part, 0o755) }
    let clock = TestClock()
    let world = try World { configuration in
      configuration.directory = "\(folder)/data"
      configuration.store.clock = { clock.now }
    }
    let (resume, change) = try await GoldenFacts.happen(world, clock)
    let told = try await GoldenFacts.tell(
      world, try await world.signIn("ana"), resume, change)
    let exported = try await GoldenFacts.export(world, try await world.signIn("ana"))
    await world.end()
    try write("\(folder)/tokens.txt", [resume, change])
    try write("\(folder)/export.ndjson", exported)
    try write("\(folder)/facts.txt", told)
    unlink("\(folder)/data/lock")
  }

  private func lines(_ path: String) throws -> [String] {
    let file = try #require(fopen(path, "r"), "\(path)")
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      guard count > 0 else { break }
      bytes += chunk.prefix(count)
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func write(_ path: String, _ lines: [String]) throws {
    let file = try #require(fopen(path, "w"), "\(path)")
    fputs(lines.joined(separator: "\n") + "\n", file)
    fclose(file)
  }

  private static func copy(_ from: String, to: String) {
    guard let directory = opendir(from) else {
      let (source, target) = (open(from, O_RDONLY), open(to, O_WRONLY | O_CREAT, 0o600))
      var chunk = [UInt8](repeating: 0, count: 65536)
      while case let count = read(source, &chunk, chunk.count), count > 0 {
        _ = Glibc.write(target, chunk, count)
      }
      close(source)
      close(target)
      return
    }
    mkdir(to, 0o700)
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { copy("\(from)/\(name)", to: "\(to)/\(name)") }
    }
    closedir(directory)
  }
}

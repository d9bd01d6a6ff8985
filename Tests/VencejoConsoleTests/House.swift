import Glibc
import Synchronization
import TestSupport
import VencejoClient
import VencejoHTTP2
import VencejoRPC
import VencejoServer

@testable import VencejoConsole

/// A real server on a folder of its own, and consoles on it.
final class House: Sendable {
  let folder: String
  let address: String
  private let backend: Backend
  private let server: Server

  init() throws {
    var template = Array("/tmp/vencejo-console-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("no temporary folder") }
    folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    backend = try Backend(configuration: .init(directory: folder + "/data"))
    let services = backend.services
    server = try Server(listening: [SocketAddress(parsing: "127.0.0.1:0")], services: services)
    address = "\(server.addresses[0])"
  }

  /// Ends the server and removes the folder.
  func close() async {
    backend.drain()
    await server.shutdown()
    backend.close()
    TemporaryFolder.remove(folder)
  }

  /// Where consoles of a device keep their files.
  func profile(_ device: String) -> Profile {
    Profile(
      name: "default", server: address, environment: ["VENCEJO_PROFILES": "\(folder)/\(device)"])
  }

  func client(_ device: String) throws -> (VencejoClient, Profile) {
    let profile = profile(device)
    return (try VencejoClient(address, storage: profile), profile)
  }

  struct Result: Sendable {
    var status: Int32
    var out: [String]
    var errors: [String]
  }

  /// Runs commands as `vencejo console` does when its standard input is a pipe.
  func run(
    _ commands: [String], on device: String = "one", json: Bool = false, keepGoing: Bool = false
  ) async throws -> Result {
    let (client, profile) = try client(device)
    var options = ConsoleOptions()
    options.json = json
    options.keepGoing = keepGoing
    let display = Recorder()
    let status = await Script.run(
      Script.lines(of: commands), client: client, profile: profile, display: display,
      options: options)
    return Result(
      status: status, out: display.out.withLock { $0 }, errors: display.errors.withLock { $0 })
  }

}

/// Keeps what is shown.
final class Recorder: Display {
  let out = Mutex<[String]>([])
  let errors = Mutex<[String]>([])

  var width: Int? { nil }
  func show(_ lines: [StyledText]) { out.withLock { $0 += lines.map(\.plain) } }
  func complain(_ lines: [StyledText]) { errors.withLock { $0 += lines.map(\.plain) } }
  func json(_ line: String) { out.withLock { $0.append(line) } }
  func askSecret(_ prompt: String) -> String? { nil }
}

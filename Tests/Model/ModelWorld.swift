import Glibc
import Synchronization
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// A server that can be killed at a named point of its writer, and started again from what was on
/// the disk then.
final class ModelWorld: Sendable {
  /// What is on the disk at a crash point is copied; whatever the old server says after it is not
  /// believed.
  final class Crash: Sendable {
    let point: String
    let image: String
    let happened = Atomic(false)
    private let folder: String

    init(point: String, folder: String, image: String) {
      self.point = point
      self.folder = folder
      self.image = image
    }

    /// On the writer's thread.
    func pass(_ name: StaticString) {
      guard "\(name)" == point, !happened.load(ordering: .acquiring) else { return }
      for file in ["vencejo.sqlite", "vencejo.sqlite-wal"] {
        ModelWorld.copy("\(folder)/\(file)", to: "\(image)/\(file)")
      }
      for name in ["assets", "uploads"] {
        ModelWorld.copyAll("\(folder)/\(name)", to: "\(image)/\(name)")
      }
      happened.store(true, ordering: .releasing)
    }
  }

  static let crashPoints = ["before-commit", "after-commit", "after-publish"]

  let root: String
  let folder: String
  let backend: Backend
  let server: Server

  init(root: String, number: Int) throws {
    self.root = root
    folder = "\(root)/\(number)"
    mkdir(folder, 0o700)
    var configuration = Backend.Configuration(directory: folder)
    configuration.store.passwordCost = Scrypt.Parameters(cost: 2, blockSize: 1, parallelism: 1)
    configuration.sweepInterval = .milliseconds(50)
    let hook = Hook()
    configuration.store.crashPoint = { point in hook.crash.withLock { $0 }?.pass(point) }
    backend = try Backend(configuration: configuration)
    var settings = Server.Configuration()
    settings.threads = 1
    server = try Server(listening: [], configuration: settings, services: backend.services)
    self.hook = hook
  }

  private final class Hook: Sendable {
    let crash = Mutex<Crash?>(nil)
  }
  private let hook: Hook

  /// The next pass of `point` is the end.
  func arm(_ point: String, image: Int) {
    let image = "\(root)/\(image)"
    mkdir(image, 0o700)
    let crash = Crash(point: point, folder: folder, image: image)
    hook.crash.withLock { $0 = crash }
  }

  var hasCrashed: Bool {
    hook.crash.withLock { $0 }?.happened.load(ordering: .acquiring) ?? false
  }

  func end() async {
    backend.drain()
    await server.shutdown()
    backend.close()
  }

  private static func copy(_ from: String, to: String) {
    guard let source = fopen(from, "r"), let target = fopen(to, "w") else { return }
    defer {
      fclose(source)
      fclose(target)
    }
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&chunk, 1, chunk.count, source)
      guard count > 0 else { return }
      fwrite(chunk, 1, count, target)
    }
  }

  private static func copyAll(_ from: String, to: String) {
    guard let folder = opendir(from) else { return copy(from, to: to) }
    mkdir(to, 0o700)
    while let entry = readdir(folder) {
      let name = name(entry)
      if name != ".", name != ".." { copyAll("\(from)/\(name)", to: "\(to)/\(name)") }
    }
    closedir(folder)
  }

  private static func name(_ entry: UnsafeMutablePointer<dirent>) -> String {
    withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
  }

}

extension Message {
  static func with(_ change: (inout Self) -> Void) -> Self {
    var message = Self()
    change(&message)
    return message
  }
}

extension CallOptions {
  static func bearer(_ token: String) -> CallOptions {
    var options = CallOptions()
    options.metadata["authorization"] = "Bearer \(token)"
    return options
  }
}

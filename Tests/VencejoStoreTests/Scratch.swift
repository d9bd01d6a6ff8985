import Glibc
import Synchronization
import TestSupport
import Testing
import VencejoCrypto

@testable import VencejoStore

/// A folder that goes away with the test.
final class Scratch: Sendable {
  private let folder: TemporaryFolder
  var path: String { folder.path }

  init() throws { folder = try TemporaryFolder("store") }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    let file = try #require(fopen(path + "/" + name, "w"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }

  func read(_ name: String) throws -> [UInt8] {
    let file = try #require(fopen(path + "/" + name, "r"))
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      guard count > 0 else { return bytes }
      bytes += chunk.prefix(count)
    }
  }

  /// The files as kill -9 would leave them at this moment, in a folder of their own. Call it on
  /// the writer's thread: nobody else changes them.
  func crashImage() throws -> Scratch {
    let image = try Scratch()
    for name in ["vencejo.sqlite", "vencejo.sqlite-wal"] where access(path + "/" + name, F_OK) == 0
    {
      try image.write(name, try read(name))
    }
    return image
  }

  func open(_ change: (inout StoreOptions) -> Void = { _ in }) throws -> Store {
    var options = StoreOptions()
    options.passwordCost = Scrypt.Parameters(cost: 2, blockSize: 1, parallelism: 1)
    change(&options)
    return try Store.open(directory: path, options: options)
  }
}

/// A clock that only moves when told.
final class ManualClock: Sendable {
  private let time = Mutex<Int64>(1_800_000_000_000_000)
  var now: Int64 { time.withLock { $0 } }
  func advance(seconds: Int64) { time.withLock { $0 += seconds * 1_000_000 } }
}

/// The reason of the error that `body` throws.
func reason(_ body: () async throws -> Void) async -> String? {
  do {
    try await body()
    return nil
  } catch { return (error as? StoreError)?.reason ?? "\(error)" }
}

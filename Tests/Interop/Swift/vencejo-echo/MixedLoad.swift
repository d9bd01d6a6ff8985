import Glibc
import InteropEcho
import Synchronization
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC

/// Calls of every kind for a while, many at once; about a third are cancelled or run out of
/// time somewhere on their way. What comes back must be right, and what was cut off must say so.
struct MixedLoad {
  struct Wrong: Error, CustomStringConvertible {
    let description: String
  }

  private final class Tally: Sendable {
    let finished = Atomic(0)
    let cancelled = Atomic(0)
    let late = Atomic(0)
    let wrong = Mutex<[String]>([])
  }

  let address: String
  let tls: ClientTLS?
  let seconds: Int
  let workers: Int

  func run() async -> Bool {
    let tally = Tally()
    let channels: [Channel]
    do {
      channels = try (0..<4).map { _ in try Channel(address, tls: tls) }
      // What a channel keeps for all its calls is no growth.
      for channel in channels { _ = try await Interop.EchoClient(channel).unary(.init()) }
    } catch {
      write("no channel: \(error)", to: 1)
      return false
    }
    let before = Self.usage()
    let end = ContinuousClock.now + .seconds(seconds)
    await withTaskGroup { group in
      for worker in 0..<workers {
        let echo = Interop.EchoClient(channels[worker % channels.count])
        group.addTask {
          while ContinuousClock.now < end { await Self.call(echo, tally) }
        }
      }
    }
    let wrong = tally.wrong.withLock { $0 }
    for text in wrong.prefix(10) { write("WRONG   \(text)", to: 1) }
    write(
      "\(tally.finished.load(ordering: .relaxed)) finished, "
        + "\(tally.cancelled.load(ordering: .relaxed)) cancelled, "
        + "\(tally.late.load(ordering: .relaxed)) late, \(wrong.count) wrong; "
        + "this client before \(before), after \(Self.usage())", to: 1)
    return wrong.isEmpty
  }

  private static func call(_ echo: Interop.EchoClient, _ tally: Tally) async {
    let kind = Int.random(in: 0..<4)
    // Of three calls one is left alone, one gets a deadline that may be too short, one is
    // cancelled after a random while.
    let fate = Int.random(in: 0..<3)
    let options = CallOptions(
      timeout: fate == 1 ? .microseconds(Int.random(in: 50..<30_000)) : .seconds(60))
    let task = Task { try await one(kind, echo, options) }
    if fate == 2 {
      // The while itself is what is tried.
      try? await Task.sleep(for: .microseconds(Int.random(in: 0..<10_000)))
      task.cancel()
    }
    do {
      try await task.value
      tally.finished.add(1, ordering: .relaxed)
    } catch let error as RPCError where error.code == .cancelled && fate == 2 {
      tally.cancelled.add(1, ordering: .relaxed)
    } catch let error as RPCError where error.code == .deadlineExceeded && fate == 1 {
      tally.late.add(1, ordering: .relaxed)
    } catch {
      tally.wrong.withLock { $0.append("kind \(kind), fate \(fate): \(error)") }
    }
  }

  private static func one(
    _ kind: Int, _ echo: Interop.EchoClient, _ options: CallOptions
  ) async throws {
    let size = [0, 10, 1_000, 20_000, 200_000][Int.random(in: 0..<5)]
    let payload = [UInt8](repeating: UInt8.random(in: 0...255), count: size)
    let count = Int.random(in: 1...8)
    switch kind {
    case 0:
      let answer = try await echo.unary(.init(payload: payload), options)
      try expect(answer.payload == payload, "unary: \(answer.payload.count) of \(size) bytes")
    case 1:
      var indices: [Int32] = []
      for try await answer in echo.serverStream(
        .init(payload: payload, responseCount: Int32(count)), options)
      {
        try expect(answer.payload == payload, "server streaming: a payload")
        indices.append(answer.index)
      }
      try expect(indices == Array(0..<Int32(count)), "server streaming: \(indices)")
    case 2:
      let call = echo.clientStream(options)
      do {
        for _ in 0..<count { try await call.send(.init(payload: payload)) }
        call.finish()
      } catch {
        // Sending says only that the call is over; the response says how.
      }
      let answer = try await call.response
      try expect(answer.requestCount == Int32(count), "client streaming: \(answer.requestCount)")
    default:
      let call = echo.bidirectional(options)
      var answers = call.makeAsyncIterator()
      for _ in 0..<count {
        do {
          try await call.send(.init(payload: payload))
        } catch {
          // As above: the next answer says how the call ended.
        }
        let answer = try await answers.next()
        try expect(answer?.payload == payload, "bidirectional: a payload")
      }
      call.finish()
      try expect(try await answers.next() == nil, "bidirectional: one too many")
    }
  }

  private static func expect(
    _ condition: Bool, _ message: @autoclosure () -> String
  ) throws(Wrong) {
    if !condition { throw Wrong(description: message()) }
  }

  /// Memory in use and open descriptors of this process.
  private static func usage() -> String {
    var pages = 0
    if let file = fopen("/proc/self/statm", "r") {
      var line = [CChar](repeating: 0, count: 128)
      fgets(&line, Int32(line.count), file)
      fclose(file)
      let text = String(
        decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      pages = Int(text.split(separator: " ").dropFirst().first ?? "0") ?? 0
    }
    var descriptors = 0
    if let folder = opendir("/proc/self/fd") {
      while readdir(folder) != nil { descriptors += 1 }
      closedir(folder)
    }
    return "\(pages * 4) KiB and \(descriptors) descriptors"
  }
}

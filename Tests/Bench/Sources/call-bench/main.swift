// The Swift side of Scripts/bench/calls.
//
//   call-bench serve ADDRESS [--pool]    serves until SIGTERM; with everything on that users have:
//                                        limits, health, reflection, statistics
//   call-bench call ADDRESS COUNT AT_A_TIME SIZE
//                                        unary calls, so many at a time; prints how many were right

import Glibc
import VencejoHTTP2
import VencejoObservability
import VencejoRPC

func write(_ text: String, to descriptor: Int32 = 1) {
  var text = text + "\n"
  text.withUTF8 { _ = Glibc.write(descriptor, $0.baseAddress, $0.count) }
}

struct Load: Calls.LoadService {
  let execution: HandlerExecution

  func echo(_ request: Calls.Item, _ context: ServerContext) async throws -> Calls.Item {
    .init(id: request.id, at: request.at, body: request.body)
  }

  func serve(
    _ request: Calls.Wanted, _ out: ResponseWriter<Calls.Item>, _ context: ServerContext
  ) async throws {
    guard request.count >= 0, (0...1 << 20).contains(request.size) else {
      throw RPCError(.invalidArgument, "count and size have limits")
    }
    let body = [UInt8](repeating: 0, count: Int(request.size))
    for number in 0..<request.count {
      try await out.send(.init(id: "0123456789abcdef", at: Int64(number | 1 << 20), body: body))
    }
  }

  func collect(
    _ requests: RequestStream<Calls.Item>, _ context: ServerContext
  ) async throws -> Calls.Item {
    var last = Calls.Item()
    var count: Int64 = 0
    for try await request in requests {
      last = request
      count += 1
    }
    last.at = count
    return last
  }

  func chat(
    _ requests: RequestStream<Calls.Item>, _ out: ResponseWriter<Calls.Item>,
    _ context: ServerContext
  ) async throws {
    for try await request in requests {
      try await out.send(.init(id: request.id, at: request.at, body: request.body))
    }
  }
}

let arguments = CommandLine.arguments.dropFirst()

func number(_ index: Int) -> Int {
  guard arguments.count > index, let value = Int(arguments[arguments.startIndex + index]) else {
    write("call-bench: a number is missing", to: 2)
    exit(2)
  }
  return value
}

func serve(_ address: String) async throws {
  var configuration = Server.Configuration()
  configuration.threads = 1
  configuration.observers = [CallMetrics()]
  let server = try Server(
    listening: SocketAddress(parsing: address), configuration: configuration
  ) {
    Load(execution: arguments.contains("--pool") ? .pool : .loop)
    Health()
    Reflection()
  }
  await server.run(onceReady: { write("listening on \(server.addresses[0])") })
}

func call(_ address: String) async throws {
  let (count, atATime) = (number(2), number(3))
  let channel = try Channel(address)
  defer { channel.close() }
  let load = Calls.LoadClient(channel)
  let item = Calls.Item(
    id: "0123456789abcdef", at: 1 << 20, body: [UInt8](repeating: 0, count: number(4)))
  let right = try await withThrowingTaskGroup(of: Int.self) { group in
    for worker in 0..<atATime {
      group.addTask {
        var right = 0
        for _ in stride(from: worker, to: count, by: atATime) {
          if try await load.echo(item) == item { right += 1 }
        }
        return right
      }
    }
    return try await group.reduce(0, +)
  }
  write("\(right)")
}

do {
  switch (arguments.first, arguments.dropFirst().first) {
  case ("serve", let address?): try await serve(address)
  case ("call", let address?): try await call(address)
  default:
    write("usage: call-bench serve ADDRESS | call ADDRESS COUNT AT_A_TIME SIZE", to: 2)
    exit(2)
  }
} catch {
  write("call-bench: \(error)", to: 2)
  exit(1)
}

import InteropEcho  // generated from Tests/Interop/interop.proto
import VencejoHTTP2
import VencejoRPC

struct Shout: Interop.EchoService {  // a method left out answers UNIMPLEMENTED
  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    Interop.EchoResponse(payload: request.payload + Array("!".utf8))
  }
}

let server = try Server(listening: SocketAddress(parsing: "127.0.0.1:0")) {
  Shout()
  Health()
  Reflection()
}
let echo = Interop.EchoClient(try Channel("\(server.addresses[0])"))
let reply = try await echo.unary(.init(payload: Array("hola".utf8)), .init(timeout: .seconds(2)))
print(String(decoding: reply.payload, as: UTF8.self))
await server.shutdown()  // a program that only serves awaits server.run() instead

import UserAPI
import VencejoRPC

// Handlers and interceptors as users write them: no attribute that says where they run.

struct Greeter: User.GreeterService {
  func greet(
    _ request: User.GreetRequest, _ context: ServerContext
  ) async throws -> User.GreetResponse {
    await Task.yield()
    return .init(text: "hola, \(request.name)")
  }

  func `repeat`(
    _ request: User.GreetRequest, _ out: ResponseWriter<User.GreetResponse>,
    _ context: ServerContext
  ) async throws {
    for number in 1...3 { try await out.send(.init(text: "\(number) \(request.name)")) }
  }

  func gather(
    _ requests: RequestStream<User.GreetRequest>, _ context: ServerContext
  ) async throws -> User.GreetResponse {
    var names: [String] = []
    for try await request in requests { names.append(request.name) }
    return .init(text: names.joined(separator: " "))
  }

  func talk(
    _ requests: RequestStream<User.GreetRequest>, _ out: ResponseWriter<User.GreetResponse>,
    _ context: ServerContext
  ) async throws {
    for try await request in requests { try await out.send(.init(text: request.name)) }
  }
}

/// An actor serves as well as a struct.
actor Counter: User.GreeterService {
  private var count = 0

  func greet(
    _ request: User.GreetRequest, _ context: ServerContext
  ) async throws -> User.GreetResponse {
    count += 1
    return .init(text: "\(count)")
  }
}

struct Stamp: ServerInterceptor {
  func intercept(_ call: ServerInterception) async throws {
    call.metadata["x-stamp"] = "1"
    call.mapResponses { bytes throws(RPCError) in bytes }
    try await call.proceed()
  }
}

struct Sign: ClientInterceptor {
  func intercept(_ call: ClientInterception) async throws {
    call.options.metadata["x-signed"] = "1"
    call.mapRequests { bytes throws(RPCError) in bytes }
    try await call.proceed()
  }
}

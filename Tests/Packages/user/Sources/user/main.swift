import UserAPI
import VencejoRPC

// Every kind of call, once; prints what came back.

@MainActor func run() async throws {
  var serving = Server.Configuration()
  serving.interceptors = [Stamp()]
  let server = try Server(
    listening: [Server.Endpoint](), configuration: serving, services: [Greeter(), Health()])
  var calling = Channel.Configuration()
  calling.interceptors = [Sign()]
  let greeter = User.GreeterClient(server.channel(configuration: calling))

  print(try await greeter.greet(.init(name: "ana")).text)
  for try await reply in greeter.repeat(.init(name: "ben")) { print(reply.text) }
  let gathering = greeter.gather()
  for name in ["ana", "ben"] { try await gathering.send(.init(name: name)) }
  gathering.finish()
  print(try await gathering.response.text)
  let talk = greeter.talk()
  async let heard: [String] = {
    var texts: [String] = []
    for try await reply in talk { texts.append(reply.text) }
    return texts
  }()
  try await talk.send(.init(name: "hola"))
  talk.finish()
  print(try await heard)
  await server.shutdown()

  let counting = try Server(listening: [Server.Endpoint](), services: [Counter()])
  let counter = User.GreeterClient(counting.channel())
  _ = try await counter.greet(.init())
  print(try await counter.greet(.init()).text)
  await counting.shutdown()
}

try await run()

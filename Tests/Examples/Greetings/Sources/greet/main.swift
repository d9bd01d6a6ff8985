import GreetingsAPI
import VencejoRPC

struct Host: Greetings.GreeterService {
  func greet(
    _ request: Greetings.GreetRequest, _ context: ServerContext
  ) async throws -> Greetings.Greeting {
    Greetings.Greeting(text: "hola, \(request.name)", mood: .warm)
  }
}

let server = try Server(listening: [] as [Server.Endpoint], services: [Host()])
let greeter = Greetings.GreeterClient(server.channel())
let greeting = try await greeter.greet(.init(name: "ana"))
print(greeting.text, greeting.firstWord, greeting.mood == .warm)
await server.shutdown()

import Glibc
import Synchronization
import TestSupport
import Testing
import VencejoAPI
import VencejoCrypto
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoServer
import VencejoStore

/// A server on a Unix socket in a folder of its own, and people who use it.
final class World: Sendable {
  let path: String
  let backend: Backend
  let server: Server
  private let target: String

  init(
    _ change: (inout Backend.Configuration) -> Void = { _ in },
    serving: (inout Server.Configuration) -> Void = { _ in }
  ) throws {
    var template = Array("/tmp/vencejo-server-XXXXXX".utf8CString)
    path = String(cString: try #require(mkdtemp(&template)))
    var configuration = Backend.Configuration(directory: path + "/data")
    configuration.store.passwordCost = Scrypt.Parameters(cost: 2, blockSize: 1, parallelism: 1)
    change(&configuration)
    backend = try Backend(configuration: configuration)
    target = "unix:\(path)/socket"
    var settings = Server.Configuration()
    settings.threads = 2
    serving(&settings)
    server = try Server(
      listening: [SocketAddress(parsing: target)], configuration: settings,
      services: backend.services)
  }

  /// Shuts down in the order a program does.
  func end() async {
    backend.drain()
    await server.shutdown()
    backend.close()
    TemporaryFolder.remove(path)
  }

  func channel() throws -> Channel { try Channel(target) }

  /// A signed-up person with a channel of their own.
  func person(_ handle: String) async throws -> Person {
    let channel = try channel()
    let response = try await Auth.AuthClient(channel).signUp(
      .with {
        $0.handle = handle; $0.password = "password of \(handle)"
      })
    return Person(
      channel: channel, name: try #require(response.user).name,
      tokens: try #require(response.tokens))
  }
}

/// Runs `body` in a world that ends with it.
func withWorld(
  _ change: (inout Backend.Configuration) -> Void = { _ in },
  serving: (inout Server.Configuration) -> Void = { _ in },
  _ body: (World) async throws -> Void
) async throws {
  let world = try World(change, serving: serving)
  do {
    try await body(world)
  } catch {
    await world.end()
    throw error
  }
  await world.end()
}

struct Person: Sendable {
  let channel: Channel
  let name: String
  let tokens: Auth.TokenPair

  var chat: Chat.ChatClient { Chat.ChatClient(channel) }
  var auth: Auth.AuthClient { Auth.AuthClient(channel) }
  var options: CallOptions { .bearer(tokens.accessToken) }

  func createChat(_ kind: Chat.ChatKind, _ members: [Person] = [], title: String = "")
    async throws -> Chat.Chat
  {
    let response = try await chat.createChat(
      .with {
        $0.chat = .with {
          $0.kind = kind; $0.title = title
        }
        $0.members = members.map(\.name)
      }, options)
    return try #require(response.chat)
  }

  @discardableResult
  func send(_ text: String, to chat: Chat.Chat, id: UUID = .v7()) async throws -> Chat.Message {
    let response = try await self.chat.sendMessage(
      .with {
        $0.parent = chat.name
        $0.messageId = "\(id)"
        $0.content = .with { $0.kind = .text(.with { $0.text = text }) }
      }, options)
    return try #require(response.message)
  }

  func subscribe(_ change: (inout Chat.SubscribeRequest) -> Void = { _ in })
    -> ServerStreamingCall<Chat.SubscribeResponse>
  {
    chat.subscribe(.with(change), options)
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

/// The code and the one ErrorInfo of the error that `body` throws.
func refusal(_ body: () async throws -> Void) async -> (StatusCode, String, String)? {
  do {
    try await body()
    return nil
  } catch let error as RPCError {
    let infos = error.details.filter { $0.typeName == "google.rpc.ErrorInfo" }
    #expect(infos.count == 1)
    let info = error.detail(GoogleRPC.ErrorInfo.self)
    return (error.code, info?.reason ?? "", info?.domain ?? "")
  } catch {
    Issue.record("\(error)")
    return nil
  }
}

func expect(
  _ code: StatusCode, _ reason: String, _ domain: String = "chat.vencejo",
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
  let found = await refusal(body)
  #expect(found?.0 == code, sourceLocation: sourceLocation)
  #expect(found?.1 == reason, sourceLocation: sourceLocation)
  #expect(found?.2 == domain, sourceLocation: sourceLocation)
}

/// A clock that only moves when told.
final class TestClock: Sendable {
  private let time = Mutex<Int64>(1_800_000_000_000_000)
  var now: Int64 { time.withLock { $0 } }
  func advance(seconds: Int64) { time.withLock { $0 += seconds * 1_000_000 } }
}

extension World {
  /// A new session, for when the clock has moved on.
  func signIn(_ handle: String) async throws -> CallOptions {
    let response = try await Auth.AuthClient(channel()).signIn(
      .with {
        $0.credential = .password(
          .with {
            $0.identifier = handle
            $0.password = "password of \(handle)"
          })
      })
    return .bearer(response.tokens?.accessToken ?? "")
  }
}

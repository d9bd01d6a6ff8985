import Synchronization
import TestSupport
import Testing
import VencejoAPI
import VencejoHTTP2
import VencejoProtobuf
import VencejoRPC
import VencejoServer

@testable import VencejoClient

/// Clients of a real server that is restarted under them.
@Suite(.timeLimit(.minutes(2))) struct RestartTests {
  private static let password = "correct-horse-battery"

  /// A server that can be stopped and started on the same port and folder.
  private final class House {
    private let folder: TemporaryFolder
    private(set) var port: UInt16 = 0
    private var backend: Backend?
    private var server: Server?

    init() throws {
      folder = try TemporaryFolder("client")
      try start()
    }

    var address: String { "127.0.0.1:\(port)" }

    func start() throws {
      let backend = try Backend(configuration: .init(directory: folder.path))
      let services = backend.services
      // Streams are cut, wherever they are: the polite end is another test's.
      var configuration = Server.Configuration()
      configuration.drainGrace = .milliseconds(20)
      let server = try Server(
        listening: [SocketAddress(parsing: "127.0.0.1:\(port)")], configuration: configuration,
        services: services)
      port = server.addresses.first?.port ?? 0
      (self.backend, self.server) = (backend, server)
    }

    func stop() async {
      await server?.shutdown()
      backend?.close()
      (backend, server) = (nil, nil)
    }
  }

  @Test func everyMessageArrivesOnceAndInOrder() async throws {
    let house = try House()
    let handles = ["ana", "ben", "cleo", "dora"]
    var clients: [VencejoClient] = []
    for handle in handles {
      let client = try VencejoClient(house.address)
      try await client.signUp(handle: handle, password: Self.password)
      clients.append(client)
    }
    var users: [String] = []
    for client in clients.dropFirst() { users.append(await client.session?.user ?? "") }
    let chat = try await clients[0].createChat(with: users, title: "all").chat?.name ?? ""

    // Each client collects what it sees; the chat ends when all have seen all.
    let perClient = 25
    let expected = handles.count * perClient
    let views = clients.map { $0.changes() }
    for client in clients { client.startSync() }
    for changes in views {
      for await change in changes where change == .caughtUp { break }
    }
    var ids: Set<String> = []
    for round in 0..<perClient {
      for client in clients {
        ids.insert(client.outbox.enqueue("message \(round)", to: chat))
      }
      if round % 8 == 7 {
        // Some were stored, some are on their way.
        let first = clients[0]
        if first.outbox.pending.count > 3 {
          for await _ in views[0] where first.outbox.pending.count <= 3 { break }
        }
        await house.stop()
        try house.start()
      }
    }
    for (client, changes) in zip(clients, views) {
      func hasAll() -> Bool {
        let texts = client.cache.messages(of: chat).filter { !$0.sender.isEmpty }
        return texts.count >= expected && client.outbox.pending.isEmpty
      }
      if !hasAll() {
        for await _ in changes where hasAll() { break }
      }
    }

    let truth = try await clients[0].messages(of: chat, limit: 1000)
    #expect(truth.map(\.sequence) == Array(1...Int64(truth.count)))
    let stored = truth.filter { !$0.sender.isEmpty }.map {
      String($0.name.split(separator: "/").last ?? "")
    }
    #expect(stored.count == expected)
    #expect(Set(stored) == ids)
    for client in clients {
      let held = client.cache.messages(of: chat)
      #expect(held.map(\.name) == truth.suffix(held.count).map(\.name))
      let fresh = try await client.getChat(chat)
      #expect(client.cache.chat(chat)?.lastSequence == fresh.lastSequence)
      #expect(client.cache.chat(chat)?.unread?.unreadCount == fresh.unread?.unreadCount)
      // In the order each client wrote them.
      let me = await client.session?.user
      let mine = truth.filter { $0.sender == me }.compactMap { message -> String? in
        if case .text(let text)? = message.content?.kind { text.text } else { nil }
      }
      #expect(mine == (0..<perClient).map { "message \($0)" })
      client.close()
    }
    await house.stop()
  }
}

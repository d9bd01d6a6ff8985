import InteropEcho
import Synchronization
import Testing
import VencejoHTTP2

@testable import VencejoRPC

/// Says who answers, and how often it was asked.
final class Numbered: Interop.EchoService {
  let number: Int32
  let calls = Atomic<Int>(0)

  init(_ number: Int32) { self.number = number }

  func unary(
    _ request: Interop.EchoRequest, _ context: ServerContext
  ) async throws -> Interop.EchoResponse {
    calls.add(1, ordering: .relaxed)
    return .init(index: number)
  }
}

@Suite("Names and balancing")
struct BalancingTests {
  private struct Fleet {
    let servers: [Server]
    let healths: [Health?]

    init(_ count: Int, health: Bool = false) throws {
      var servers: [Server] = []
      var healths: [Health?] = []
      for number in 0..<count {
        let own = health ? Health() : nil
        healths.append(own)
        let services: [any Service] = [Numbered(Int32(number))] + (own.map { [$0] } ?? [])
        servers.append(
          try Server(
            listening: [SocketAddress(parsing: "127.0.0.1:0")], configuration: Harness.quick,
            services: services))
      }
      self.servers = servers
      self.healths = healths
    }

    var addresses: [SocketAddress] { servers.map { $0.addresses[0] } }

    func stop() async { for server in servers { await server.shutdown(grace: .zero) } }
  }

  private static let roundRobin = "{ \"loadBalancingConfig\": [{ \"round_robin\": {} }] }"

  /// How often each server answers.
  private func answers(
    _ client: Interop.EchoClient, _ calls: Int, _ servers: Int
  ) async throws -> [Int] {
    var counts = [Int](repeating: 0, count: servers)
    for _ in 0..<calls { counts[Int(try await client.unary(.init()).index)] += 1 }
    return counts
  }

  private func client(
    _ addresses: [SocketAddress], _ config: String?
  ) throws -> Interop.EchoClient {
    var configuration = Channel.Configuration.quick
    configuration.serviceConfig = config
    return Interop.EchoClient(try Channel(addresses: addresses, configuration: configuration))
  }

  @Test func pickFirstStaysWithOne() async throws {
    let fleet = try Fleet(3)
    let client = try client(fleet.addresses, nil)
    #expect(try await answers(client, 30, 3) == [30, 0, 0])
    // The next one when it goes.
    await fleet.servers[0].shutdown(grace: .zero)
    #expect(try await eventually { try await answers(client, 1, 3)[1] == 1 })
    await fleet.stop()
  }

  @Test func roundRobinAsksAllInTurn() async throws {
    let fleet = try Fleet(3)
    let client = try client(fleet.addresses, Self.roundRobin)
    // Once all are connected.
    #expect(try await eventually { try await answers(client, 3, 3) == [1, 1, 1] })
    #expect(try await answers(client, 30, 3) == [10, 10, 10])
    // One drains: the others take its calls, and none fails.
    await fleet.servers[1].shutdown()
    let counts = try await answers(client, 30, 3)
    #expect(counts[1] == 0 && counts[0] == 15 && counts[2] == 15)
    await fleet.stop()
  }

  @Test func withoutAnyServerCallsFail() async throws {
    let client = try client([], Self.roundRobin)
    #expect(try await failure { _ = try await client.unary(.init()) }?.code == .unavailable)
    let first = try self.client([], nil)
    #expect(try await failure { _ = try await first.unary(.init()) }?.code == .unavailable)
    let nobody = try self.client(
      [.ipv4(0x7f00_0001, port: 1), .ipv4(0x7f00_0001, port: 2)], Self.roundRobin)
    #expect(try await failure { _ = try await nobody.unary(.init()) }?.code == .unavailable)
  }

  // MARK: Health

  private static let healthy = """
    { "loadBalancingConfig": [{ "round_robin": {} }],
      "healthCheckConfig": { "serviceName": "vencejo.interop.v1.Echo" } }
    """

  /// gRFC A17: servers that say they are not well get no calls, and get them again later.
  @Test func theIllAreLeftAlone() async throws {
    let fleet = try Fleet(2, health: true)
    fleet.healths[0]?.set(.notServing, for: "vencejo.interop.v1.Echo")
    let client = try client(fleet.addresses, Self.healthy)
    #expect(try await answers(client, 20, 2) == [0, 20])
    fleet.healths[0]?.set(.serving, for: "vencejo.interop.v1.Echo")
    #expect(try await eventually { try await answers(client, 2, 2) == [1, 1] })
    fleet.healths[1]?.set(.notServing, for: "vencejo.interop.v1.Echo")
    #expect(try await eventually { try await answers(client, 2, 2) == [2, 0] })
    fleet.healths[0]?.set(.notServing, for: "vencejo.interop.v1.Echo")
    #expect(
      try await eventually {
        try await failure { _ = try await client.unary(.init()) }?.code == .unavailable
      })
    await fleet.stop()
  }

  @Test func serversWithoutTheHealthServiceAreWell() async throws {
    let fleet = try Fleet(2)
    let client = try client(fleet.addresses, Self.healthy)
    #expect(try await eventually { try await answers(client, 2, 2) == [1, 1] })
    await fleet.stop()
  }

  /// pick_first asks nobody (gRFC A17).
  @Test func pickFirstDoesNotAsk() async throws {
    let fleet = try Fleet(1, health: true)
    fleet.healths[0]?.set(.notServing, for: "vencejo.interop.v1.Echo")
    let client = try client(
      fleet.addresses,
      "{ \"healthCheckConfig\": { \"serviceName\": \"vencejo.interop.v1.Echo\" } }")
    #expect(try await answers(client, 3, 1) == [3])
    await fleet.stop()
  }

  // MARK: Resolvers

  /// Answers with what it is told, each time it is asked.
  private final class Script: Channel.Resolver {
    let answers: Mutex<[Result<Channel.Resolution, RPCError>]>
    let asked = Atomic<Int>(0)

    init(_ answers: [Result<Channel.Resolution, RPCError>]) { self.answers = Mutex(answers) }

    func resolve(_ found: @escaping @Sendable (Channel.Resolution) -> Void) async throws {
      asked.add(1, ordering: .relaxed)
      let answer = answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
      found(try answer.get())
    }
  }

  /// Stays, and tells of changes.
  private struct Watcher: Channel.Resolver {
    let updates: AsyncStream<Channel.Resolution>

    func resolve(_ found: @escaping @Sendable (Channel.Resolution) -> Void) async throws {
      for await update in updates { found(update) }
    }
  }

  private func client(_ resolver: any Channel.Resolver) throws -> Interop.EchoClient {
    Interop.EchoClient(
      try Channel(resolver: resolver, authority: "echo.example", configuration: .quick))
  }

  @Test func aResolverTellsOfChanges() async throws {
    let fleet = try Fleet(3)
    let (updates, tell) = AsyncStream.makeStream(
      of: Channel.Resolution.self, bufferingPolicy: .bufferingNewest(8))
    let client = try client(Watcher(updates: updates))
    tell.yield(.init(addresses: [fleet.addresses[0]], serviceConfig: Self.roundRobin))
    #expect(try await answers(client, 3, 3) == [3, 0, 0])
    tell.yield(.init(addresses: fleet.addresses))
    #expect(try await eventually { try await answers(client, 3, 3) == [1, 1, 1] })
    tell.yield(.init(addresses: [fleet.addresses[2]]))
    #expect(try await eventually { try await answers(client, 3, 3) == [0, 0, 3] })
    // A config that is not valid changes nothing.
    tell.yield(.init(addresses: fleet.addresses, serviceConfig: "{ nonsense"))
    #expect(try await eventually { try await answers(client, 3, 3) == [1, 1, 1] })
    tell.finish()
    await fleet.stop()
  }

  @Test func aFailingResolverFailsTheCallsThatDoNotWait() async throws {
    let fleet = try Fleet(1)
    let error = RPCError(.unavailable, "no such name")
    let script = Script([
      .failure(error), .failure(error), .success(.init(addresses: fleet.addresses)),
    ])
    let client = try client(script)
    async let patient = client.unary(.init(), .init(waitForReady: true))
    let hasty = try await failure { _ = try await client.unary(.init()) }
    #expect(hasty?.code == .unavailable && hasty?.message == "no such name")
    #expect(try await patient.index == 0)
    #expect(script.asked.load(ordering: .relaxed) == 3)
    await fleet.stop()
  }

  @Test func aLostConnectionMakesItAskAgain() async throws {
    let fleet = try Fleet(2)
    let script = Script([
      .success(.init(addresses: [fleet.addresses[0]])),
      .success(.init(addresses: [fleet.addresses[1]])),
    ])
    let client = try client(script)
    #expect(try await client.unary(.init()).index == 0)
    await fleet.servers[0].shutdown()
    #expect(
      try await client.unary(.init(), .init(timeout: .seconds(10), waitForReady: true)).index == 1)
    await fleet.stop()
  }

  @Test func aConfigOfTheResolverIsThereBeforeTheFirstCall() async throws {
    let fleet = try Fleet(1)
    let config = """
      { "methodConfig": [{ "name": [{}], "maxRequestMessageBytes": 10 }] }
      """
    let client = try client(
      Script([.success(.init(addresses: fleet.addresses, serviceConfig: config))]))
    let long = try await failure {
      _ = try await client.unary(.init(payload: [UInt8](repeating: 0, count: 20)))
    }
    #expect(long?.code == .resourceExhausted)
    #expect(try await client.unary(.init()).index == 0)
    let wrong = try self.client(
      Script([.success(.init(addresses: fleet.addresses, serviceConfig: "[]"))]))
    let error = try await failure { _ = try await wrong.unary(.init()) }
    #expect(error?.code == .unavailable)
    #expect(error?.message.contains("service config") == true)
    await fleet.stop()
  }
}

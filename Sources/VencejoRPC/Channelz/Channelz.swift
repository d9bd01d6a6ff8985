import VencejoHTTP2
import VencejoProtobuf

/// Shows what the channels, servers and connections of the process do right now (gRFC A14).
///
/// Make it before the servers and channels it is to show: what was made earlier keeps no
/// counts, and is left out. It tells addresses, targets and certificates to whoever may call it.
public final class Channelz: GRPCChannelz.ChannelzService {
  private static let pageSize = 100

  public init() { ChannelzRegistry.enable() }

  public func getTopChannels(
    _ request: GRPCChannelz.GetTopChannelsRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetTopChannelsResponse {
    let (page, end) = try Self.page(
      of: .channel, from: request.startChannelId, request.maxResults)
    return .init(channel: page.map(\.channelMessage), end: end)
  }

  public func getServers(
    _ request: GRPCChannelz.GetServersRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetServersResponse {
    let (page, end) = try Self.page(of: .server, from: request.startServerId, request.maxResults)
    return .init(server: page.map(\.serverMessage), end: end)
  }

  public func getServerSockets(
    _ request: GRPCChannelz.GetServerSocketsRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetServerSocketsResponse {
    guard let server = ChannelzRegistry.entry(request.serverId, .server) else {
      throw RPCError(.notFound, "no server \(request.serverId)")
    }
    let sockets = server.children(.socket).filter { $0.id >= request.startSocketId }
    let (page, end) = try Self.cut(sockets, request.maxResults)
    return .init(socketRef: page.map(\.socketRef), end: end)
  }

  public func getChannel(
    _ request: GRPCChannelz.GetChannelRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetChannelResponse {
    guard let entry = ChannelzRegistry.entry(request.channelId, .channel) else {
      throw RPCError(.notFound, "no channel \(request.channelId)")
    }
    return .init(channel: entry.channelMessage)
  }

  public func getSubchannel(
    _ request: GRPCChannelz.GetSubchannelRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetSubchannelResponse {
    guard let entry = ChannelzRegistry.entry(request.subchannelId, .subchannel) else {
      throw RPCError(.notFound, "no subchannel \(request.subchannelId)")
    }
    return .init(subchannel: entry.subchannelMessage)
  }

  public func getSocket(
    _ request: GRPCChannelz.GetSocketRequest, _ context: ServerContext
  ) async throws -> GRPCChannelz.GetSocketResponse {
    guard let entry = ChannelzRegistry.entry(request.socketId, .socket, .listener) else {
      throw RPCError(.notFound, "no socket \(request.socketId)")
    }
    return .init(socket: await entry.socketMessage())
  }

  private static func page(
    of kind: ChannelzEntry.Kind, from: Int64, _ wanted: Int64
  ) throws -> (page: [ChannelzEntry], end: Bool) {
    try cut(
      ChannelzRegistry.all(kind, from: from, limit: max(pageSize, Int(clamping: wanted))), wanted)
  }

  private static func cut(
    _ entries: [ChannelzEntry], _ wanted: Int64
  ) throws -> (page: [ChannelzEntry], end: Bool) {
    guard wanted >= 0 else { throw RPCError(.invalidArgument, "max_results is below 0") }
    let size = wanted == 0 ? pageSize : Int(clamping: wanted)
    return (Array(entries.prefix(size)), entries.count <= size)
  }
}

extension ChannelzEntry {
  private var data: GRPCChannelz.ChannelData {
    let counts = calls.values
    var data = GRPCChannelz.ChannelData()
    data.state = .init(state: connectivity)
    data.target = name
    data.trace = traceMessage
    data.callsStarted = counts.begun
    data.callsSucceeded = counts.succeeded
    data.callsFailed = counts.failed
    data.lastCallStartedTimestamp = Self.timestamp(counts.last)
    return data
  }

  private var traceMessage: GRPCChannelz.ChannelTrace {
    let (count, events) = trace
    return .init(
      numEventsLogged: count, creationTimestamp: Self.timestamp(created),
      events: events.map {
        .init(description: $0.text, severity: $0.severity, timestamp: Self.timestamp($0.time))
      })
  }

  fileprivate static func timestamp(_ nanoseconds: Int64) -> Google.Timestamp? {
    guard nanoseconds > 0 else { return nil }
    return .init(
      seconds: nanoseconds / 1_000_000_000, nanos: Int32(nanoseconds % 1_000_000_000))
  }

  var channelMessage: GRPCChannelz.Channel {
    .init(
      ref: .init(channelId: id, name: name), data: data,
      subchannelRef: children(.subchannel).map { .init(subchannelId: $0.id, name: $0.name) },
      socketRef: children(.socket).map(\.socketRef))
  }

  var subchannelMessage: GRPCChannelz.Subchannel {
    .init(
      ref: .init(subchannelId: id, name: name), data: data,
      socketRef: children(.socket).map(\.socketRef))
  }

  var socketRef: GRPCChannelz.SocketRef { .init(socketId: id, name: name) }

  var serverMessage: GRPCChannelz.Server {
    let counts = calls.values
    var data = GRPCChannelz.ServerData()
    data.trace = traceMessage
    data.callsStarted = counts.begun
    data.callsSucceeded = counts.succeeded
    data.callsFailed = counts.failed
    data.lastCallStartedTimestamp = Self.timestamp(counts.last)
    return .init(
      ref: .init(serverId: id, name: name), data: data,
      listenSocket: children(.listener).map(\.socketRef))
  }

  func socketMessage() async -> GRPCChannelz.Socket {
    var message = GRPCChannelz.Socket()
    message.ref = socketRef
    guard let socket else {
      message.data = .init()
      message.local = Self.address(name)
      return message
    }
    let insight = await socket.insight()
    let values = socket.values
    var data = GRPCChannelz.SocketData()
    data.streamsStarted = values.streams
    data.streamsSucceeded = values.succeeded
    data.streamsFailed = values.failed
    data.messagesSent = values.sent
    data.messagesReceived = values.received
    data.lastMessageSentTimestamp = Self.timestamp(values.lastSent)
    data.lastMessageReceivedTimestamp = Self.timestamp(values.lastReceived)
    if let insight {
      let last = Self.timestamp(values.lastStream)
      if insight.isServer {
        data.lastRemoteStreamCreatedTimestamp = last
      } else {
        data.lastLocalStreamCreatedTimestamp = last
      }
      data.keepAlivesSent = Int64(insight.keepalives)
      data.localFlowControlWindow = .init(value: Int64(insight.sendWindow))
      data.remoteFlowControlWindow = .init(value: Int64(insight.receiveWindow))
      if let cipher = insight.cipher {
        var tls = GRPCChannelz.Security.Tls()
        tls.cipherSuite = .standardName(cipher)
        tls.localCertificate = insight.localCertificate ?? []
        tls.remoteCertificate = insight.remoteCertificate ?? []
        message.security = .init(model: .tls(tls))
      }
    }
    message.data = data
    if let addresses = socket.addresses {
      message.local = Self.address(addresses.local)
      message.remote = Self.address(addresses.remote)
    }
    return message
  }

  private static func address(_ text: String) -> GRPCChannelz.Address {
    (try? SocketAddress(parsing: text)).map(address)
      ?? .init(address: .otherAddress(.init(name: text)))
  }

  private static func address(_ address: SocketAddress) -> GRPCChannelz.Address {
    switch address {
    case .ipv4(let number, let port):
      .init(
        address: .tcpipAddress(
          .init(ipAddress: bytes(UInt64(number), 4), port: Int32(port))))
    case .ipv6(let high, let low, let port, _):
      .init(
        address: .tcpipAddress(
          .init(ipAddress: bytes(high, 8) + bytes(low, 8), port: Int32(port))))
    case .unix(let path): .init(address: .udsAddress(.init(filename: path)))
    }
  }

  private static func bytes(_ number: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - $0))) }
  }
}

public import VencejoAPI
import VencejoProtobuf
public import VencejoRPC

/// Live changes of records: transactions, each the frames that belong together. Goes on across lost
/// connections without a gap and without a repetition; its reader sets the pace.
///
/// Throws when the server refuses the targets, and `.cancelled` when the task was cancelled.
public struct RecordWatch: AsyncSequence, Sendable {
  public typealias Element = [Record.SubscribeResponse]
  public typealias Failure = RPCError

  let client: VencejoClient
  let parent: String
  let targets: [Record.SubscribeTarget]
  /// Told how the connection stands.
  public var report: @Sendable (ConnectionState) -> Void = { _ in }

  public struct AsyncIterator: AsyncIteratorProtocol {
    let stream: ResumableStream<Record.SubscribeResponse>

    public mutating func next() async throws(RPCError) -> Element? {
      try await stream.next().frames
    }

    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(RPCError) -> Element? {
      try await stream.next().frames
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    let records = Record.RecordClient(client.channel)
    let heartbeat = client.configuration.heartbeat
    return AsyncIterator(
      stream: ResumableStream(
        token: "", authenticator: client.authenticator, heartbeat: heartbeat, report: report
      ) { [parent, targets] token, options in
        var request = Record.SubscribeRequest()
        request.parent = parent
        request.targets = targets
        request.resumeToken = token
        request.heartbeatInterval = .init(heartbeat)
        return records.subscribe(request, options)
      })
  }
}

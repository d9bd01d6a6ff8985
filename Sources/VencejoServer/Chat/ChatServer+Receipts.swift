import VencejoAPI
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Receipts, typing, presence, and what administrators are told.
extension ChatServer {
  func markRead(_ request: Chat.MarkReadRequest, _ context: ServerContext) async throws
    -> Chat.MarkReadResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.chat, field: "chat")
      let (unread, sequence) = try await store.write { transaction -> (UnreadState, Int64) in
        let marked = try transaction.markRead(
          chat, upTo: request.upToSequence, isPrivate: request.`private`, by: caller.user)
        return (marked.unread, marked.readSequence)
      }
      return Chat.MarkReadResponse(unread: Chat.UnreadState(unread), readSequence: sequence)
    }
  }

  func markDelivered(_ request: Chat.MarkDeliveredRequest, _ context: ServerContext) async throws
    -> Chat.MarkDeliveredResponse
  {
    try await respond(context) { caller in
      let markers = try request.markers.map {
        (chat: try ResourceName.chat($0.chat, field: "markers.chat"), sequence: $0.upToSequence)
      }
      try await store.write { try $0.markDelivered(markers, by: caller.user) }
      return Chat.MarkDeliveredResponse()
    }
  }

  func listReceipts(_ request: Chat.ListReceiptsRequest, _ context: ServerContext) async throws
    -> Chat.ListReceiptsResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.parent, field: "parent")
      let page = try await store.read {
        try $0.listReceipts(
          name.id, in: name.chat, pageSize: request.pageSize, pageToken: request.pageToken,
          for: caller.user)
      }
      return Chat.ListReceiptsResponse(
        receipts: page.receipts.map {
          Chat.Receipt(
            user: "users/\($0.user)",
            deliverTime: $0.deliverTime.map { Google.Timestamp(microseconds: $0) },
            readTime: $0.readTime.map { Google.Timestamp(microseconds: $0) })
        }, nextPageToken: page.nextPageToken)
    }
  }

  func getUnreadSummary(_ request: Chat.GetUnreadSummaryRequest, _ context: ServerContext)
    async throws -> Chat.GetUnreadSummaryResponse
  {
    try await respond(context) { caller in
      let summary = try await store.read { try $0.unreadSummary(of: caller.user) }
      return Chat.GetUnreadSummaryResponse(
        unreadChatCount: Int32(clamping: summary.chats),
        totalUnreadCount: Int32(clamping: summary.messages),
        mentionCount: Int32(clamping: summary.mentions))
    }
  }

  // MARK: Typing and presence

  /// How long a client shows that somebody types.
  private static let typingTTL: Int64 = 6_000_000

  func sendTyping(_ request: Chat.SendTypingRequest, _ context: ServerContext) async throws
    -> Chat.SendTypingResponse
  {
    try await respond(context) { caller in
      let chat = try ResourceName.chat(request.chat, field: "chat")
      guard (1...3).contains(request.state.rawValue) else {
        throw StoreError.invalid(
          "state", "BAD_TYPING_STATE", "choose TYPING, RECORDING_AUDIO or STOPPED")
      }
      let key = try await store.read { try $0.typingPlace(chat, by: caller.user) }
      guard let key else { return Chat.SendTypingResponse() }
      hub.publish(
        .typing(
          .init(
            chat: "chats/\(chat)", user: "users/\(caller.userID)", state: request.state,
            ttl: Google.Duration(microseconds: Self.typingTTL))), chat: key, by: caller.user)
      return Chat.SendTypingResponse()
    }
  }

  func setPresence(_ request: Chat.SetPresenceRequest, _ context: ServerContext) async throws
    -> Chat.SetPresenceResponse
  {
    try await respond(context) { caller in
      guard (1...3).contains(request.state.rawValue) else {
        throw StoreError.invalid("state", "BAD_PRESENCE", "choose ONLINE, AWAY or OFFLINE")
      }
      presence.declare(request.state, user: caller.user, caller.userID)
      return Chat.SetPresenceResponse()
    }
  }

  // MARK: Reports

  func reportMessage(_ request: Chat.ReportMessageRequest, _ context: ServerContext) async throws
    -> Chat.ReportMessageResponse
  {
    try await respond(context) { caller in
      let name = try ResourceName.message(request.name, field: "name")
      try await store.write {
        try $0.report(
          name.id, in: name.chat, reason: request.reason, requestID: request.requestId,
          by: caller.user)
      }
      return Chat.ReportMessageResponse()
    }
  }

  func listReports(_ request: Chat.ListReportsRequest, _ context: ServerContext) async throws
    -> Chat.ListReportsResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listReports(
          includeResolved: request.includeResolved, pageSize: request.pageSize,
          pageToken: request.pageToken, by: caller)
      }
      return Chat.ListReportsResponse(
        reports: page.reports.map { Chat.Report($0) }, nextPageToken: page.nextPageToken)
    }
  }

  func resolveReport(_ request: Chat.ResolveReportRequest, _ context: ServerContext) async throws
    -> Chat.ResolveReportResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.single(request.name, "reports", field: "name")
      let report = try await store.write {
        try $0.resolveReport(id, resolution: request.resolution, by: caller)
      }
      return Chat.ResolveReportResponse(report: Chat.Report(report))
    }
  }
}

extension Chat.Report {
  init(_ report: VencejoStore.Report) {
    self.init(
      name: "reports/\(report.id)", message: report.message, reporter: "users/\(report.reporter)",
      reason: report.reason, createTime: Google.Timestamp(microseconds: report.createTime),
      resolveTime: report.resolveTime.map { Google.Timestamp(microseconds: $0) },
      resolution: report.resolution)
  }
}

import VencejoAPI
import VencejoCrypto
import VencejoHTTPClient
import VencejoProtobuf
import VencejoRPC
import VencejoStore

// Notifications, and where they are pushed to.
extension ChatServer {
  func listNotifications(_ request: Chat.ListNotificationsRequest, _ context: ServerContext)
    async throws -> Chat.ListNotificationsResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listNotifications(
          unreadOnly: request.unreadOnly, pageSize: request.pageSize,
          pageToken: request.pageToken, for: caller.user)
      }
      return Chat.ListNotificationsResponse(
        notifications: page.notifications.map { Chat.Notification($0) },
        nextPageToken: page.nextPageToken, unreadCount: Int32(clamping: page.unread))
    }
  }

  func markNotificationsRead(
    _ request: Chat.MarkNotificationsReadRequest, _ context: ServerContext
  ) async throws -> Chat.MarkNotificationsReadResponse {
    try await respond(context) { caller in
      let ids = try request.names.map {
        try ResourceName.own($0, "notifications", field: "names", caller: caller)
      }
      let unread = try await store.write { try $0.markNotificationsRead(ids, by: caller.user) }
      return Chat.MarkNotificationsReadResponse(unreadCount: Int32(clamping: unread))
    }
  }

  func createPushEndpoint(_ request: Chat.CreatePushEndpointRequest, _ context: ServerContext)
    async throws -> Chat.CreatePushEndpointResponse
  {
    try await respond(context) { caller in
      let asked = request.pushEndpoint ?? Chat.PushEndpoint()
      guard case .httpHook(let target)? = asked.target else {
        throw StoreError.invalid("push_endpoint.target", "BAD_TARGET", "say where to push to")
      }
      let address = try HookRules.check(target.uri, hooks.policy)
      if asked.serverEvents, caller.role != .administrator {
        throw StoreError(
          .permissionDenied, "NOT_AN_ADMINISTRATOR",
          "only administrators of the server hear of its events")
      }
      let secret =
        target.signingSecret.isEmpty ? HookSignature.newSecret() : target.signingSecret
      let new = NewHook(
        .push, uri: address.url, secret: try HookSignature.key(secret),
        format: target.format == .binary ? .binary : .json,
        flags: HookFlags(
          (asked.redactContent ? [.redacted] : []) + (asked.serverEvents ? [.serverEvents] : [])))
      let hook = try await store.write {
        try $0.createHook(new, requestID: request.requestId, by: caller.user)
      }
      guard let hook else {
        throw StoreError.notFound(
          "PUSH_ENDPOINT_NOT_FOUND", type: "vencejo.chat.v1.PushEndpoint",
          name: "what this request_id made")
      }
      var endpoint = Chat.PushEndpoint(hook)
      // A repeat does not tell the secret that the first answer told.
      if hook.secret == new.secret, case .httpHook(var target)? = endpoint.target {
        target.signingSecret = secret
        endpoint.target = .httpHook(target)
      }
      return Chat.CreatePushEndpointResponse(pushEndpoint: endpoint)
    }
  }

  func listPushEndpoints(_ request: Chat.ListPushEndpointsRequest, _ context: ServerContext)
    async throws -> Chat.ListPushEndpointsResponse
  {
    try await respond(context) { caller in
      let page = try await store.read {
        try $0.listHooks(
          .push, pageSize: request.pageSize, pageToken: request.pageToken, by: caller.user)
      }
      return Chat.ListPushEndpointsResponse(
        pushEndpoints: page.hooks.map { Chat.PushEndpoint($0) }, nextPageToken: page.nextPageToken)
    }
  }

  func deletePushEndpoint(_ request: Chat.DeletePushEndpointRequest, _ context: ServerContext)
    async throws -> Chat.DeletePushEndpointResponse
  {
    try await respond(context) { caller in
      let id = try ResourceName.own(
        request.name, "pushEndpoints", field: "name", caller: caller)
      guard try await store.write({ try $0.deleteHook(id, .push, by: caller.user) }) else {
        throw StoreError.notFound(
          "PUSH_ENDPOINT_NOT_FOUND", type: "vencejo.chat.v1.PushEndpoint", name: request.name)
      }
      return Chat.DeletePushEndpointResponse()
    }
  }
}

extension Chat.PushEndpoint {
  init(_ hook: Hook) {
    self.init()
    name = "users/\(hook.userID)/pushEndpoints/\(hook.id)"
    var target = Chat.HttpHookTarget()
    target.uri = hook.uri
    target.format = hook.format == .binary ? .binary : .json
    self.target = .httpHook(target)
    redactContent = hook.flags.contains(.redacted)
    serverEvents = hook.flags.contains(.serverEvents)
    createTime = Google.Timestamp(microseconds: hook.createTime)
    state = hook.isActive ? .active : .disabled
    fault = hook.fault
    lastSuccessTime = hook.lastSuccessTime.map { Google.Timestamp(microseconds: $0) }
    waitingCount = Int32(clamping: hook.waiting)
  }
}

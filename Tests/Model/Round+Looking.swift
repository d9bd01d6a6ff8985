import VencejoAPI
import VencejoCrypto
import VencejoProtobuf
import VencejoRPC

/// Errands that look at what the model knows, and some that change it.
extension Round {
  private func shared(of user: Int) -> String? {
    model.chats(of: user).filter {
      model.chats[$0]?.kind == .group || model.chats[$0]?.kind == .channel
    }.sorted().randomElement(using: &random)
  }

  func lookAtPeople(_ user: Int) async throws {
    let other = pick(0..<people.count)
    var profiles: [Chat.Profile] = []
    _ = try await must("\(user) looks at \(other)") {
      let profile = try await $0.getProfile(
        .with { $0.name = "\(self.people[other].name)/profile" }, self.options(user)
      ).profile
      profiles = profile.map { [$0] } ?? []
    }
    if profiles.map(\.handle) != [people[other].handle] {
      fault("\(user) sees \(other) as \(profiles)")
    }
    _ = try await must("\(user) looks at all") {
      profiles = try await $0.batchGetProfiles(
        .with { $0.names = self.people.map { "\($0.name)/profile" } }, self.options(user)
      ).profiles
    }
    if profiles.map(\.handle) != people.map(\.handle) {
      fault("\(user) sees \(profiles.map(\.handle))")
    }
    _ = try await must("\(user) looks for users") {
      profiles = try await $0.searchProfiles(.with { $0.query = "USER" }, self.options(user))
        .profiles
    }
    if profiles.map(\.handle) != people.map(\.handle) {
      fault("\(user) finds \(profiles.map(\.handle))")
    }
    _ = try await must("\(user) lists the blocked") {
      profiles = try await $0.listBlockedUsers(.init(), self.options(user)).profiles
    }
    let blocked = (model.blocks[user] ?? []).map { people[$0].handle }.sorted()
    if profiles.map(\.handle).sorted() != blocked {
      fault("\(user) blocks \(profiles.map(\.handle)), should \(blocked)")
    }
  }

  func lookAtChat(_ user: Int) async throws {
    guard let name = model.chats.keys.sorted().randomElement(using: &random),
      let chat = model.chats[name]
    else { return }
    let unknown = model.knows(user, name) ? nil : "CHAT_NOT_FOUND"
    var title = ""
    if try await must(
      "\(user) asks for \(name)", unknown,
      {
        title = try await $0.getChat(.with { $0.name = name }, self.options(user)).chat?.title ?? ""
      }), model.isIn(user, name), title != chat.title
    {
      fault("\(user) sees \(name) as \(title), should \(chat.title)")
    }
    var members: [String] = []
    var closed = memberRefusal(user, name)
    if closed == nil, chat.kind == .channel, chat.members[user]?.role == .reader {
      closed = "ROLE_TOO_LOW"
    }
    if try await must(
      "\(user) lists members of \(name)", closed,
      {
        members = try await $0.listMembers(
          .with {
            $0.parent = name
            $0.pageSize = 200
          }, self.options(user)
        ).members.map(\.user)
      })
    {
      let should = chat.members.filter(\.value.isIn).map { people[$0.key].name }
      if Set(members) != Set(should) {
        fault("\(user) sees \(members) in \(name), should \(should)")
      }
    }
    var refusal = memberRefusal(user, name)
    if refusal == nil, (chat.members[user]?.role ?? .reader) < .admin { refusal = "ROLE_TOO_LOW" }
    var invites: [String] = []
    if try await must(
      "\(user) lists invites of \(name)", refusal,
      {
        invites = try await $0.listInvites(
          .with {
            $0.parent = name
            $0.pageSize = 200
          }, self.options(user)
        ).invites.map(\.name)
      })
    {
      let should = model.invites.filter { $0.chat == name && !$0.isRevoked }.map(\.name)
      if Set(invites) != Set(should) {
        fault("\(user) sees invites \(invites) of \(name), should \(should)")
      }
    }
  }

  func lookAtMessage(_ user: Int) async throws {
    guard let name = model.chats.keys.sorted().randomElement(using: &random),
      let messages = model.chats[name]?.messages,
      let index = messages.indices.filter({ !messages[$0].id.isEmpty }).randomElement(
        using: &random)
    else { return lookedInVain() }
    let message = messages[index]
    let target = "\(name)/messages/\(message.id)"
    let refusal =
      !model.knows(user, name)
      ? "CHAT_NOT_FOUND" : message.isVisible(to: user) ? nil : "MESSAGE_NOT_FOUND"
    var seen = Chat.Message()
    if try await must(
      "\(user) asks for \(target)", refusal,
      {
        seen =
          try await $0.getMessage(.with { $0.name = target }, self.options(user)).message ?? seen
      })
    {
      let should = message.isDeleted ? "" : message.text
      if ClientCache.text(seen) != should || seen.sequence != Int64(index + 1) {
        fault("\(user) sees \(target) as \(seen), should \(should)")
      }
    }
    var reactions: [String: String] = [:]
    if try await must(
      "\(user) lists reactions to \(target)", refusal,
      {
        reactions = Dictionary(
          try await $0.listReactions(
            .with {
              $0.parent = target
              $0.pageSize = 200
            }, self.options(user)
          ).reactions.map { ($0.user, $0.emoji) }, uniquingKeysWith: { $1 })
      })
    {
      var should: [String: String] = [:]
      for (other, emoji) in message.reactions { should[people[other].name] = emoji }
      if reactions != should {
        fault("\(user) sees reactions \(reactions) to \(target), should \(should)")
      }
    }
  }

  /// There was nothing to look at: the next errand of the kind has more luck.
  private func lookedInVain() { log("nothing to look at yet") }

  /// By an invite that an administrator has to agree to.
  func askToJoin(_ user: Int) async throws {
    guard let chat = shared(of: user) else { return lookedInVain() }
    let asking = pick(0..<people.count)
    let isLow = (model.chats[chat]?.members[user]?.role ?? .reader) < .admin
    let request = unique("request")
    var invite = Chat.Invite()
    guard
      try await must(
        "\(user) lets others ask to join \(chat)", isLow ? "ROLE_TOO_LOW" : nil,
        {
          invite =
            try await $0.createInvite(
              .with {
                $0.parent = chat
                $0.requestId = request
                $0.invite = .with { $0.requiresApproval = true }
              }, self.options(user)
            ).invite ?? invite
        })
    else { return }
    let isIn = model.isIn(asking, chat)
    var isPending = false
    _ = try await must("\(asking) asks to join \(chat)") {
      isPending = try await $0.joinChat(
        .with { $0.inviteCode = invite.code }, self.options(asking)
      ).pendingApproval
    }
    if isPending == isIn { fault("\(asking), in \(chat): \(isIn), waits: \(isPending)") }
    var waiting: [String] = []
    _ = try await must("\(user) sees who asks") {
      waiting = try await $0.listJoinRequests(.with { $0.parent = chat }, self.options(user))
        .joinRequests.map(\.user)
    }
    if waiting.contains(people[asking].name) == isIn {
      fault("\(waiting) wait for \(chat), \(asking) is in: \(isIn)")
    }
    let agrees = pick(0..<3) > 0
    let id = people[asking].name.dropFirst("users/".count)
    // To agree to somebody who is in is no fault.
    let expected = isIn && !agrees ? "JOIN_REQUEST_NOT_FOUND" : nil
    let isDone = try await must(
      "\(user) lets \(asking) into \(chat): \(agrees)", expected,
      again: ["JOIN_REQUEST_NOT_FOUND"]
    ) {
      _ = try await $0.answerJoinRequest(
        .with {
          $0.name = "\(chat)/joinRequests/\(id)"
          $0.approve = agrees
        }, self.options(user))
    }
    if isDone, agrees, !isIn { model.add(asking, to: chat) }
    _ = try await must("\(user) takes that invite back", nil, again: ["INVITE_NOT_FOUND"]) {
      _ = try await $0.revokeInvite(.with { $0.name = invite.name }, self.options(user))
    }
  }

  func receive(_ user: Int) async throws {
    guard let chat = model.chats.keys.sorted().randomElement(using: &random) else {
      return lookedInVain()
    }
    let sequence = Int64(pick(0..<(model.chats[chat]?.messages.count ?? 0) + 3))
    _ = try await must(
      "\(user) received \(chat) to \(sequence)", model.knows(user, chat) ? nil : "CHAT_NOT_FOUND"
    ) {
      _ = try await $0.markDelivered(
        .with {
          $0.markers = [
            .with {
              $0.chat = chat
              $0.upToSequence = sequence
            }
          ]
        }, self.options(user))
    }
  }

  // MARK: Files

  func fetchFile(_ user: Int) async throws {
    let upload = "\(UUID.v7())"
    let request = Chat.GetAttachmentUploadRequest.with { $0.uploadId = upload }
    _ = try await must("\(user) asks for an upload that is none", "UPLOAD_NOT_FOUND") {
      _ = try await $0.getAttachmentUpload(request, self.options(user))
    }
    // Begun and broken off, then gone on with from where it got.
    let bytes = Array(unique("half").utf8)
    let half = Array(bytes.prefix(bytes.count / 2))
    var got: Int64 = 0
    var name = ""
    _ = try await must("\(user) uploads half a file and then the rest") { client in
      do {
        let call = client.uploadAttachment(self.options(user))
        try await call.send(self.header(upload, bytes, 0))
        try await call.send(.with { $0.payload = .chunk(half) })
        call.finish()
        _ = try await call.response
      } catch let error as RPCError {
        guard error.detail(GoogleRPC.ErrorInfo.self) != nil else { throw error }
      }
      got = try await client.getAttachmentUpload(request, self.options(user)).committedBytes
      let call = client.uploadAttachment(self.options(user))
      try await call.send(self.header(upload, bytes, got))
      if got < bytes.count {
        try await call.send(.with { $0.payload = .chunk(Array(bytes[Int(got)...])) })
      }
      call.finish()
      name = try await call.response.attachment?.name ?? ""
    }
    model.uploads[name] = user
    model.files[name] = bytes

    guard let wanted = model.files.keys.sorted().randomElement(using: &random) else { return }
    let reader = pick(0..<people.count)
    let isSeen = model.chats.values.contains { chat in
      chat.messages.contains {
        $0.attachment == wanted && $0.isVisible(to: reader) && !$0.isDeleted
      }
    }
    var held: [UInt8] = []
    if try await must(
      "\(reader) downloads \(wanted)",
      isSeen || model.uploads[wanted] == reader ? nil : "ATTACHMENT_NOT_FOUND",
      {
        held = []
        let call = $0.downloadAttachment(.with { $0.name = wanted }, self.options(reader))
        for try await part in call {
          if case .chunk(let chunk)? = part.payload { held += chunk }
        }
      }), held != model.files[wanted]
    {
      fault("\(reader) got \(held) of \(wanted)")
    }
  }

  private func header(_ upload: String, _ bytes: [UInt8], _ offset: Int64)
    -> Chat.UploadAttachmentRequest
  {
    .with {
      $0.payload = .header(
        .with {
          $0.uploadId = upload
          $0.sizeBytes = Int64(bytes.count)
          $0.sha256 = SHA256.digest(bytes)
          $0.offset = offset
        })
    }
  }

  // MARK: What calls

  func readNotifications(_ user: Int) async throws {
    var left = Chat.ListNotificationsResponse()
    _ = try await must("\(user) reads the notifications") {
      _ = try await $0.markNotificationsRead(.init(), self.options(user))
    }
    _ = try await must("\(user) lists those not read") {
      left = try await $0.listNotifications(.with { $0.unreadOnly = true }, self.options(user))
    }
    if !left.notifications.isEmpty || left.unreadCount != 0 {
      fault("\(user) has read all notifications but \(left)")
    }
  }

  func makeEndpoint(_ user: Int) async throws {
    let request = unique("request")
    var name = ""
    guard
      try await must(
        "\(user) makes a push endpoint", nil, again: [],
        {
          name =
            try await $0.createPushEndpoint(
              .with {
                $0.requestId = request
                $0.pushEndpoint = .with {
                  $0.target = .httpHook(.with { $0.uri = "https://hook.example/there" })
                }
              }, self.options(user)
            ).pushEndpoint?.name ?? ""
        })
    else { return }
    var listed: [String] = []
    _ = try await must("\(user) lists push endpoints") {
      listed = try await $0.listPushEndpoints(.init(), self.options(user)).pushEndpoints.map(\.name)
    }
    if listed != [name] { fault("\(user) has the endpoints \(listed), should \(name)") }
    _ = try await must("\(user) deletes it", nil, again: ["PUSH_ENDPOINT_NOT_FOUND"]) {
      _ = try await $0.deletePushEndpoint(.with { $0.name = name }, self.options(user))
    }
    _ = try await must("\(user) lists push endpoints again") {
      listed = try await $0.listPushEndpoints(.init(), self.options(user)).pushEndpoints.map(\.name)
    }
    if !listed.isEmpty { fault("\(user) still has \(listed)") }
  }

  func report(_ user: Int) async throws {
    let seen = model.chats(of: user).sorted().flatMap { name in
      (model.chats[name]?.messages ?? []).filter { !$0.id.isEmpty && $0.isVisible(to: user) }
        .map { "\(name)/messages/\($0.id)" }
    }
    guard let message = seen.randomElement(using: &random) else { return lookedInVain() }
    let (reason, request) = (unique("reason"), unique("request"))
    _ = try await must("\(user) reports \(message)") {
      _ = try await $0.reportMessage(
        .with {
          $0.name = message
          $0.reason = reason
          $0.requestId = request
        }, self.options(user))
    }
    _ = try await must("1 lists reports", "NOT_AN_ADMINISTRATOR") {
      _ = try await $0.listReports(.init(), self.options(1))
    }
    var reports: [Chat.Report] = []
    _ = try await must("0 lists reports") {
      reports = try await $0.listReports(.with { $0.pageSize = 200 }, self.options(0)).reports
    }
    let own = reports.filter { $0.reason == reason }
    guard own.count == 1, own[0].message == message, own[0].reporter == people[user].name else {
      return fault("the report of \(message) is listed as \(own)")
    }
    _ = try await must("0 resolves it") {
      _ = try await $0.resolveReport(
        .with {
          $0.name = own[0].name
          $0.resolution = "seen"
        }, self.options(0))
    }
    _ = try await must("0 lists what is left") {
      reports = try await $0.listReports(.with { $0.pageSize = 200 }, self.options(0)).reports
    }
    if reports.contains(where: { $0.reason == reason }) { fault("\(reason) is still open") }
  }

  // MARK: Imports

  /// The administrator brings a chat of three from elsewhere.
  func bringChat() async throws {
    let senders = [0] + [1, 2, 3, 4, 5].shuffled(using: &random).prefix(2)
    let title = unique("brought")
    let texts = senders.map { (sender: $0, text: unique("once")) }
    let file = texts.map { "31/12/2023, 21:41 - \(people[$0.sender].handle): \($0.text)\n" }
      .joined()
    var chat = Chat.Chat()
    guard
      try await must(
        "0 brings \(title)", nil, again: [],
        {
          let call = $0.importChat(self.options(0))
          try await call.send(
            .with {
              $0.payload = .header(
                .with {
                  $0.format = .text
                  $0.title = title
                  for sender in senders {
                    $0.senders[self.people[sender].handle] = self.people[sender].name
                  }
                })
            })
          try await call.send(.with { $0.payload = .chunk(Array(file.utf8)) })
          call.finish()
          chat = try await call.response.chat ?? chat
        })
    else { return }
    var there: [Chat.Message] = []
    _ = try await must("0 looks at what came") {
      there = try await $0.listMessages(.with { $0.parent = chat.name }, self.options(0)).messages
    }
    let blocked = model.blocks[0] ?? []
    guard there.map(ClientCache.text) == texts.filter({ !blocked.contains($0.sender) }).map(\.text)
    else { return fault("what came of \(texts) is \(there)") }
    model.create(chat.name, .own, title: title, by: 0, with: Array(senders.dropFirst()))
    model.becomeImported(chat.name)
    let ids = Dictionary(
      there.map { (ClientCache.text($0), String($0.name.split(separator: "/").last ?? "")) },
      uniquingKeysWith: { $1 })
    for (sender, text) in texts {
      // One that 0 does not see has no name that 0 could tell the model.
      var message = ChatModel.Message(id: ids[text] ?? "", sender: sender, text: text)
      message.isOld = true
      model.append(message, to: chat.name)
    }
    for sender in senders { model.read(sender, chat.name, upTo: texts.count) }
  }
}

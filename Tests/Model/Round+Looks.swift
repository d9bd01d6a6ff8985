import VencejoAPI
import VencejoCrypto
import VencejoJSON
import VencejoProtobuf
import VencejoRPC

/// What every other way of looking must show at the end: searches, files, receipts, notifications,
/// exports, sums.
extension Round {
  func compareLooks(_ user: Int) async throws {
    try await compareSearch(user)
    try await compareFiles(user)
    try await compareReceipts(user)
    try await compareNotifications(user)
    try await compareSums(user)
    try await compareExport(user)
  }

  private func compareSearch(_ user: Int) async throws {
    // Words are unique but for what was forwarded.
    var wanted: Set<String> = []
    for chat in model.chats.values {
      for message in chat.messages.suffix(20) where !message.text.isEmpty && pick(0..<4) == 0 {
        wanted.insert(message.text)
      }
    }
    for text in wanted.sorted().prefix(8) {
      var should: Set<String> = []
      for (name, chat) in model.chats where model.knows(user, name) {
        for (index, message) in chat.messages.enumerated()
        where message.text == text && !message.isDeleted && message.isVisible(to: user)
          && message.sender != nil
        {
          should.insert("\(name) \(index + 1)")
        }
      }
      let hits = try await client.searchMessages(
        .with {
          $0.query = "\"\(text)\""
          $0.pageSize = 100
        }, options(user)
      ).hits.compactMap(\.message)
      // A phrase is found within longer texts too: those are not asked for.
      let found = Set(
        hits.filter { ClientCache.text($0) == text }.map {
          "\(ClientCache.chat(of: $0.name)) \($0.sequence)"
        })
      if found != should {
        fault(
          "\(people[user].handle) finds \(text) at \(found.sorted()), should \(should.sorted())")
      }
    }
  }

  private func compareFiles(_ user: Int) async throws {
    for (name, uploader) in model.uploads.sorted(by: { $0.key < $1.key }) {
      let isSeen = model.chats.values.contains { chat in
        chat.messages.contains {
          $0.attachment == name && $0.isVisible(to: user) && !$0.isDeleted
        }
      }
      var reason: String?
      do throws(RPCError) {
        _ = try await client.getAttachment(.with { $0.name = name }, options(user))
      } catch {
        reason = error.detail(GoogleRPC.ErrorInfo.self)?.reason ?? "\(error)"
      }
      let may = isSeen || uploader == user
      if (reason == nil) != may {
        fault("\(people[user].handle) asks for \(name): \(reason ?? "shown"), may: \(may)")
      }
    }
  }

  /// Hidden receipts are hidden both ways.
  private func compareReceipts(_ user: Int) async throws {
    for (name, chat) in model.chats.sorted(by: { $0.key < $1.key })
    where model.isIn(user, name) && chat.kind != .channel && chat.kind != .own {
      guard
        let index = chat.messages.lastIndex(where: {
          $0.sender == user && $0.isVisible(to: user) && !$0.id.isEmpty
        })
      else { continue }
      let receipts = try await client.listReceipts(
        .with { $0.parent = "\(name)/messages/\(chat.messages[index].id)" }, options(user)
      ).receipts
      for receipt in receipts {
        guard let other = people.firstIndex(where: { $0.name == receipt.user }) else {
          fault("a receipt of a stranger in \(name)")
          continue
        }
        if !model.isIn(other, name) { fault("a receipt of \(other), who left \(name)") }
        if receipt.readTime != nil,
          model.hidesReceipts.contains(other) || model.hidesReceipts.contains(user)
        {
          fault("\(user) is shown that \(other) read \(index + 1) of \(name)")
        }
      }
    }
  }

  private func compareNotifications(_ user: Int) async throws {
    var found: Set<String> = []
    var token = ""
    repeat {
      let page = try await client.listNotifications(
        .with {
          $0.pageSize = 5
          $0.pageToken = token
        }, options(user))
      for item in page.notifications where item.kind == .mention { found.insert(item.message) }
      token = page.nextPageToken
    } while !token.isEmpty
    var should: Set<String> = []
    for (name, chat) in model.chats {
      for message in chat.messages
      where message.notified.contains(user) && !message.isDeleted && message.isVisible(to: user) {
        if let sender = message.sender, model.blocks[user]?.contains(sender) ?? false { continue }
        should.insert("\(name)/messages/\(message.id)")
      }
    }
    if found != should {
      fault(
        "\(people[user].handle) is notified of \(found.sorted()), should \(should.sorted())")
    }
  }

  private func compareSums(_ user: Int) async throws {
    let summary = try await client.getUnreadSummary(.init(), options(user))
    var (chats, messages, mentions) = (0, 0, 0)
    for name in model.chats(of: user) {
      let unread = model.unread(user, name)
      if unread.count > 0 { chats += 1 }
      messages += unread.count
      mentions += unread.mentions
    }
    if Int(summary.unreadChatCount) != chats || Int(summary.totalUnreadCount) != messages
      || Int(summary.mentionCount) != mentions
    {
      fault("\(people[user].handle) has \(summary) in all, should \((chats, messages, mentions))")
    }
  }

  private func compareExport(_ user: Int) async throws {
    guard let name = model.chats(of: user).sorted().randomElement(using: &random) else { return }
    var bytes: [UInt8] = []
    let call = client.exportChat(
      .with {
        $0.name = name
        $0.format = .ndjson
      }, options(user))
    for try await part in call { bytes += part.chunk }
    var sequences: [Int] = []
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      if case .message(let message)? = try Chat.ExportLine(jsonString: String(line)).line {
        sequences.append(Int(message.sequence))
      }
    }
    if sequences != model.visible(user, name) {
      fault(
        "\(people[user].handle) exports \(sequences) of \(name), should \(model.visible(user, name))"
      )
    }
  }
}

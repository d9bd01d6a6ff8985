import VencejoAPI

/// The chats of a cache, and how those that changed were before: what a store has to write.
struct TrackedChats: Sendable {
  private(set) var entries: [String: ChatContents.Entry] = [:]
  /// By name; nil for a chat that was not there. Empty unless tracking.
  private var before: [String: ChatContents.Entry?] = [:]
  /// Whether anybody will ask what changed.
  var isTracking = false

  init(_ entries: [String: ChatContents.Entry] = [:]) { self.entries = entries }

  var values: some Collection<ChatContents.Entry> { entries.values }

  subscript(name: String) -> ChatContents.Entry? {
    get { entries[name] }
    _modify {
      remember(name)
      yield &entries[name]
    }
  }

  mutating func removeValue(forKey name: String) -> ChatContents.Entry? {
    remember(name)
    return entries.removeValue(forKey: name)
  }

  mutating func removeAll() {
    for name in entries.keys { remember(name) }
    entries.removeAll()
  }

  private mutating func remember(_ name: String) {
    if isTracking, before.index(forKey: name) == nil {
      before.updateValue(entries[name], forKey: name)
    }
  }

  /// What changed since the last time.
  mutating func takeDelta() -> ChatContents.Delta {
    var delta = ChatContents.Delta()
    for (name, old) in before {
      guard let new = entries[name] else {
        if old != nil { delta.removedChats.append(name) }
        continue
      }
      if old?.chat != new.chat { delta.chats.append(new.chat) }
      delta.add(name, old?.messages ?? [], new.messages)
    }
    before.removeAll(keepingCapacity: true)
    return delta
  }
}

extension ChatContents {
  /// The difference between two states.
  struct Delta: Sendable {
    var removedChats: [String] = []
    var chats: [Chat.Chat] = []
    var removedMessages: [(chat: String, sequence: Int64)] = []
    var messages: [(chat: String, message: Chat.Message)] = []

    /// Both in the order of their sequences.
    mutating func add(_ chat: String, _ old: [Chat.Message], _ new: [Chat.Message]) {
      var index = 0
      for message in new {
        while index < old.count, old[index].sequence < message.sequence {
          removedMessages.append((chat, old[index].sequence))
          index += 1
        }
        if index < old.count, old[index].sequence == message.sequence {
          if old[index] != message { messages.append((chat, message)) }
          index += 1
        } else {
          messages.append((chat, message))
        }
      }
      for message in old[index...] { removedMessages.append((chat, message.sequence)) }
    }
  }
}

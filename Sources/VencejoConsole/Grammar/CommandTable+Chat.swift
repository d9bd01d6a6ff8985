import VencejoTools

extension CommandTable {
  static let account: [CommandSpec] = [
    CommandSpec(
      name: "sign-up", aliases: ["signup"],
      usage: "sign-up HANDLE [PASSWORD] [name=\"Display name\"] [email=ADDRESS]",
      summary: "make an account and sign in",
      details: "Without a password on a terminal you are asked for it, unseen.",
      examples: ["sign-up ana", "sign-up bob correct-horse-battery name=\"Bob B.\""],
      group: .account
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let displayName = arguments.value("name")
      let email = arguments.value("email")
      let handle = try arguments.next("the handle")
      return .signUp(
        handle: handle, password: arguments.next()?.text, displayName: displayName, email: email)
    },
    CommandSpec(
      name: "sign-in", aliases: ["signin", "login"],
      usage: "sign-in HANDLE [PASSWORD]",
      summary: "sign in; the next start remembers it",
      examples: ["sign-in ana", "sign-in bob correct-horse-battery"], group: .account
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .signIn(handle: try arguments.next("the handle"), password: arguments.next()?.text)
    },
    CommandSpec(
      name: "sign-out", aliases: ["signout", "logout"],
      usage: "sign-out [--everywhere]",
      summary: "end this session (or all of yours)",
      examples: ["sign-out", "sign-out --everywhere"], group: .account
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .signOut(everywhere: arguments.flag("--everywhere"))
    },
    CommandSpec(
      name: "whoami", usage: "whoami", summary: "the account signed in",
      examples: ["whoami", "/whoami"], group: .account
    ) { (_: inout Arguments) throws(GrammarError) in .whoAmI },
    CommandSpec(
      name: "server", usage: "server", summary: "what the server says of itself, and its clock",
      examples: ["server", "/server"], group: .account
    ) { (_: inout Arguments) throws(GrammarError) in .server },
  ]

  static let chats: [CommandSpec] = [
    CommandSpec(
      name: "chats", usage: "chats",
      summary: "your chats: title, last message, time, unread",
      examples: ["chats", "/chats"], group: .chats
    ) { (_: inout Arguments) throws(GrammarError) in .chats },
    CommandSpec(
      name: "chat new", aliases: ["new"],
      usage: "chat new HANDLE… [title=\"…\"]",
      summary: "begin a chat with one person, or a group",
      examples: ["chat new ana", "chat new ana bob title=\"Sunday walk\""], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let title = arguments.value("title")
      var handles = [try arguments.next("a handle")]
      while let word = arguments.next() { handles.append(word.text) }
      return .newChat(handles: handles, title: title)
    },
    CommandSpec(
      name: "open", usage: "open CHAT",
      summary: "open a chat: what you type from then on is sent",
      details: "A chat is named by its title, the other person's handle, its number in the list of "
        + "`chats`, or its full name. With a chat open, commands begin with a slash.",
      examples: ["open ana", "open \"Sunday walk\""], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      if arguments.isEmpty { _ = try arguments.next("the chat") }
      return .open(chat: arguments.rest())
    },
    CommandSpec(
      name: "back", aliases: ["close"], usage: "back", summary: "leave the open chat",
      examples: ["/back", "back"], group: .chats
    ) { (_: inout Arguments) throws(GrammarError) in .back },
    CommandSpec(
      name: "send", usage: "send TEXT…", summary: "send a text to the open chat",
      details: "The text is taken as it stands; one text in double quotes is taken out of them. "
        + "A blank message is not sent.",
      examples: ["/send hello", "/send \"two\\nlines\""], group: .chats,
      takesText: true
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let range = arguments.name
      return .send(try message(&arguments, range))
    },
    CommandSpec(
      name: "say", usage: "say CHAT TEXT…", summary: "send a text to a chat without opening it",
      examples: ["say ana hola, ¿qué tal?", "say \"Sunday walk\" \"I'm late\""], group: .chats,
      takesText: true
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let chat = try arguments.next("the chat")
      return .say(chat: chat, text: try message(&arguments, arguments.name))
    },
    CommandSpec(
      name: "messages", aliases: ["history"], usage: "messages [CHAT] [COUNT]",
      summary: "the newest messages of a chat",
      examples: ["messages ana 20", "/messages 5"], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      guard let first = arguments.next() else { return .messages(chat: nil, count: nil) }
      if let second = arguments.next() {
        return .messages(chat: first.text, count: try Arguments.positive(second))
      }
      if !first.isQuoted, let count = Int(first.text), count > 0 {
        return .messages(chat: nil, count: count)
      }
      return .messages(chat: first.text, count: nil)
    },
    CommandSpec(
      name: "read", usage: "read [CHAT]", summary: "mark a chat as read",
      examples: ["read ana", "/read"], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .read(chat: arguments.isEmpty ? nil : arguments.rest())
    },
    CommandSpec(
      name: "unread", usage: "unread", summary: "the chats with unread messages",
      examples: ["unread", "/unread"], group: .chats
    ) { (_: inout Arguments) throws(GrammarError) in .unread },
    CommandSpec(
      name: "users find", aliases: ["find", "users"], usage: "users find TEXT",
      summary: "people by handle or name",
      examples: ["users find an", "find \"Bob B\""], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      if arguments.isEmpty { _ = try arguments.next("what to look for") }
      return .findUsers(arguments.rest())
    },
    CommandSpec(
      name: "outbox", usage: "outbox", summary: "messages that the server does not have yet",
      details: "What is written without a server is kept and sent when it is back, also by a later "
        + "start of the console. What the server refused stays until you retry or discard it.",
      examples: ["outbox", "/outbox"], group: .chats
    ) { (_: inout Arguments) throws(GrammarError) in .outbox },
    CommandSpec(
      name: "retry", usage: "retry [N]",
      summary: "try a refused message again, or all of them",
      examples: ["retry", "/retry 2"], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .retry(
        try arguments.next().map { (word) throws(GrammarError) in try Arguments.positive(word) })
    },
    CommandSpec(
      name: "discard", usage: "discard N",
      summary: "drop a message of the outbox", examples: ["discard 1", "/discard 2"], group: .chats
    ) { (arguments: inout Arguments) throws(GrammarError) in
      guard let word = arguments.next() else {
        _ = try arguments.next("the message's number in the list of outbox")
        return .outbox
      }
      return .discard(try Arguments.positive(word))
    },
  ]

  /// The text of a message; a blank one is refused as in the messengers people know.
  private static func message(
    _ arguments: inout Arguments, _ name: Range<Int>
  ) throws(GrammarError) -> String {
    let range =
      arguments.isEmpty
      ? arguments.line.count..<arguments.line.count + 1
      : arguments.position..<arguments.line.count
    let text = arguments.rest()
    if VisibleText.isBlank(text) {
      throw GrammarError(
        message: "a blank message is not sent", hint: "usage: \(arguments.usage)", range: range)
    }
    return text
  }
}

extension CommandTable {
  static let records: [CommandSpec] = [
    CommandSpec(
      name: "use", usage: "use container NAME | use zone NAME | use database private|public",
      summary: "choose where records are put and looked for",
      examples: ["use container notes", "use zone work"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let kind = arguments.first
      switch try arguments.next("container, zone or database") {
      case "container": return .use(.container(try arguments.next("the container's name")))
      case "zone": return .use(.zone(try arguments.next("the zone's name")))
      case "database":
        let word = arguments.first
        guard let database = Command.Database(rawValue: try arguments.next("private or public"))
        else {
          throw GrammarError(
            message: "no such database", hint: "it is private or public", range: word?.range)
        }
        return .use(.database(database))
      default:
        throw GrammarError(
          message: "use what?", hint: "usage: \(arguments.usage)", range: kind?.range)
      }
    },
    CommandSpec(
      name: "zones", usage: "zones", summary: "the zones of the database in use",
      examples: ["zones", "/zones"], group: .records
    ) { (_: inout Arguments) throws(GrammarError) in .zones },
    CommandSpec(
      name: "zone new", usage: "zone new NAME", summary: "make a zone and use it",
      examples: ["zone new work", "zone new 2026"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .newZone(try arguments.next("the zone's name"))
    },
    CommandSpec(
      name: "zone delete", usage: "zone delete NAME --yes",
      summary: "delete a zone with all its records",
      examples: ["zone delete work --yes", "zone delete 2026 --yes"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let sure = arguments.flag("--yes")
      let name = try arguments.next("the zone's name")
      if !sure {
        throw GrammarError(
          message: "this deletes every record of the zone",
          hint: "say so: zone delete \(name) --yes",
          range: arguments.name)
      }
      return .deleteZone(name)
    },
    CommandSpec(
      name: "put", aliases: ["save"],
      usage: "put TYPE [NAME] FIELD=VALUE… [--new | --replace | --if TAG]",
      summary: "save a record",
      details: """
        Values: 3, 2.5, "a text", @now, @2026-11-30T08:15:00Z, 41.4,2.2 (a place), >name (another \
        record), [1,2] (a list), true. Without a name one is made up. The fields given are \
        written over what is there; --new refuses an existing record, --replace drops its other \
        fields, --if saves only while the record still has that change tag.
        """,
      examples: [
        "put Note first title=\"buy milk\" n=3 at=@now",
        "put Place title=Barcelona loc=41.4,2.2 note=>first",
      ], group: .records, parse: parsePut),
    CommandSpec(
      name: "get", usage: "get NAME", summary: "one record with its fields",
      examples: ["get first", "get note-7"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .get(try arguments.next("the record's name"))
    },
    CommandSpec(
      name: "delete", usage: "delete NAME", summary: "delete a record",
      examples: ["delete first", "delete note-7"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .delete(try arguments.next("the record's name"))
    },
    CommandSpec(
      name: "query", usage: "query TYPE [where …] [order by FIELD [desc], …] [limit N]",
      summary: "the records that match",
      details: """
        Conditions: = != < <= > >=, FIELD in (1, 2), beginsWith(FIELD, "x"), contains(LIST, value), \
        containsAll(LIST, …), exists(FIELD), distance(FIELD, 41.4, 2.2) < 500; joined by and, or, \
        not and parentheses.
        """,
      examples: [
        "query Note where n > 3 and beginsWith(title, \"x\") order by n desc limit 20",
        "query Place where distance(loc, 41.4, 2.2) < 5000",
      ], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .query(try parseQuery(&arguments))
    },
    CommandSpec(
      name: "explain", usage: "explain TYPE [where …] [order by FIELD [desc], …] [limit N]",
      summary: "what the server reads for a page of a query",
      details: """
        How many rows it read, whether the page had to end before it was full, and each statement \
        with SQLite's plan of it. A query that is refused says why.
        """,
      examples: ["explain Note where n > 3 order by n desc", "explain Note where title = \"x\""],
      group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .explain(try parseQuery(&arguments))
    },
    CommandSpec(
      name: "changes", usage: "changes [--all]",
      summary: "what changed in the zone since you last asked (or ever)",
      examples: ["changes", "changes --all"], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .changes(all: arguments.flag("--all"))
    },
    CommandSpec(
      name: "watch", usage: "watch zone [NAME] | watch query … [--count N] [--timeout SECONDS]",
      summary: "show changes of records as they happen",
      details: """
        On a terminal they appear above the prompt until `unwatch`, or until the limit given. In a \
        script, with --count or --timeout, the command waits for them (exit status 124 when fewer \
        came in time); without, `wait` shows them.
        """,
      examples: [
        "watch query Note where n > 3", "watch zone work --count 2 --timeout 10",
      ], group: .records
    ) { (arguments: inout Arguments) throws(GrammarError) in
      let limit = try arguments.limit()
      let kind = arguments.first
      switch try arguments.next("zone or query") {
      case "zone": return .watch(.zone(arguments.next()?.text), limit)
      case "query": return .watch(.query(try parseQuery(&arguments)), limit)
      default:
        throw GrammarError(
          message: "watch what?", hint: "usage: \(arguments.usage)", range: kind?.range)
      }
    },
    CommandSpec(
      name: "unwatch", usage: "unwatch", summary: "stop watching records",
      examples: ["unwatch", "/unwatch"], group: .records
    ) { (_: inout Arguments) throws(GrammarError) in .unwatch },
  ]

  static let general: [CommandSpec] = [
    CommandSpec(
      name: "wait", usage: "wait [N] [--timeout SECONDS]",
      summary: "wait for the next N live events (1) and show them",
      details: """
        Live events are messages of others and changes of watched records; those that came since \
        the last wait count. For scripts: the exit status is 124 when the time is up.
        """,
      examples: ["wait", "wait 3 --timeout 10"], group: .general
    ) { (arguments: inout Arguments) throws(GrammarError) in
      var limit = try arguments.limit()
      if let word = arguments.next() { limit.count = try Arguments.positive(word) }
      return .wait(limit)
    },
    CommandSpec(
      name: "help", aliases: ["?"], usage: "help [COMMAND]",
      summary: "the commands, or one of them with examples",
      examples: ["help", "help query"], group: .general
    ) { (arguments: inout Arguments) throws(GrammarError) in
      .help(arguments.isEmpty ? nil : arguments.rest())
    },
    CommandSpec(
      name: "quit", aliases: ["exit"], usage: "quit", summary: "leave",
      examples: ["quit", "/quit"], group: .general
    ) { (_: inout Arguments) throws(GrammarError) in .quit },
  ]

  @Sendable private static func parsePut(
    _ arguments: inout Arguments
  ) throws(GrammarError) -> Command {
    var policies: [Command.Put.Policy] = []
    if arguments.flag("--new") { policies.append(.create) }
    if arguments.flag("--replace") { policies.append(.replace) }
    if let tag = try arguments.option("--if") { policies.append(.ifTag(tag.text)) }
    if policies.count > 1 {
      throw GrammarError(
        message: "only one of --new, --replace and --if", hint: nil, range: arguments.name)
    }
    var put = Command.Put(
      type: try arguments.next("the record type"), name: nil, fields: [:],
      policy: policies.first ?? .merge)
    while let word = arguments.next() {
      if let key = word.key {
        guard isFieldName(key) else {
          throw GrammarError(
            message: "this is no field name", hint: "letters, digits and _, a letter first",
            range: word.range.lowerBound..<word.range.lowerBound + key.count)
        }
        put.fields[key] = try ValueParser.parse(
          word.value, isQuoted: word.isQuoted, at: word.valueStart)
      } else if put.name == nil, put.fields.isEmpty, !word.text.hasPrefix("--") {
        put.name = word.text
      } else {
        throw GrammarError(
          message: "FIELD=VALUE belongs here", hint: "for example: title=\"buy milk\" n=3",
          range: word.range)
      }
    }
    return .put(put)
  }

  private static func isFieldName(_ name: String) -> Bool {
    guard let first = name.utf8.first, name.utf8.count <= 255 else { return false }
    func isLetter(_ byte: UInt8) -> Bool {
      (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }
    return isLetter(first)
      && name.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
  }

  /// The query takes the rest of the line up to the options that were taken out of its end.
  private static func parseQuery(
    _ arguments: inout Arguments
  ) throws(GrammarError) -> RecordQuery {
    let start = arguments.position
    var end = start
    while let word = arguments.next() { end = word.range.upperBound }
    return try QueryParser.parse(arguments.line, from: start, to: max(end, start))
  }
}

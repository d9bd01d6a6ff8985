import Glibc
import Synchronization
import Testing
import VencejoClient
import VencejoTools

@testable import VencejoConsole

/// Scripts against a real server.
@Suite(.timeLimit(.minutes(2))) struct ScriptTests {
  let password = "correct-horse-battery"

  func with(_ body: (House) async throws -> Void) async throws {
    let house = try House()
    do {
      try await body(house)
    } catch {
      await house.close()
      throw error
    }
    await house.close()
  }

  @Test func twoPeopleTalk() async throws {
    try await with { house in
      let first = try await house.run([
        "# the tour of the README",
        "sign-up ana \(password) name=\"Ana\"", "sign-up ben \(password) name=\"Ben\"",
        "chat new ana", "/say ana hola, ana", "/say ana are you there? don't sleep",
        "/sign-in ana \(password)", "/chats", "/messages ben", "/say ben \"hola,\\nben\"",
        "/chats", "/unread",
      ])
      #expect(first.status == 0, "\(first.errors)")
      let rows = first.out.filter { $0.hasPrefix("1  Ben") }
      #expect(rows.count == 2)
      #expect(rows[0].contains("are you there? don't sleep") && rows[0].hasSuffix("(2)"))
      // Sending reads up to what was sent.
      #expect(rows[1].contains("you: hola, ben") && !rows[1].hasSuffix(")"))
      #expect(first.out.contains { $0.hasSuffix("  Ben: hola, ana") })
      #expect(first.out.last == "all is read")

      // The session is kept: the next run is signed in, as the one who was last.
      let second = try await house.run(["whoami", "open ben", "plain text", "chats", "/back"])
      #expect(second.status == 0, "\(second.errors)")
      #expect(second.out.first?.hasPrefix("ana  users/") == true)
      // With a chat open, a line is a message, whatever it says.
      #expect(second.out.contains { $0.hasSuffix("[Ben] Ana: plain text") })
      #expect(second.out.contains { $0.hasSuffix("[Ben] Ana: chats") })

      // Signing in without a password uses the session kept on this device.
      let third = try await house.run(["sign-in ben", "unread"])
      #expect(third.status == 0, "\(third.errors)")
      #expect(third.out.contains { $0.hasPrefix("1  Ana") && $0.hasSuffix("(3)") })
      let elsewhere = try await house.run(["sign-in ben"], on: "two")
      #expect(elsewhere.status == ExitCode.usage)
      #expect(elsewhere.errors.first == "error: a password is needed")
    }
  }

  @Test func groupsAndJSON() async throws {
    try await with { house in
      _ = try await house.run([
        "sign-up ana \(password)", "sign-up ben \(password)", "sign-up cleo \(password)",
        "chat new ana ben title=\"Sunday walk\"", "say \"Sunday walk\" who comes?",
      ])
      let result = try await house.run(["sign-in ana \(password)", "chats"], json: true)
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.out.count == 2)
      #expect(result.out[0].contains(#""handle":"ana""#) && !result.out[0].contains("oken"))
      #expect(result.out[1].contains(#""title":"Sunday walk""#))
      #expect(result.out[1].contains(#""unreadCount":1"#))
      let found = try await house.run(["users find be", "messages Sunday"], json: false)
      #expect(found.out.contains { $0.hasPrefix("ben ") }, "\(found.out) \(found.errors)")
      #expect(found.out.contains { $0.hasSuffix("cleo: who comes?") })
    }
  }

  @Test func errorsStopAScriptAndSayWhatToDo() async throws {
    try await with { house in
      let unsigned = try await house.run(["chats", "server"])
      #expect(unsigned.status == 80)
      #expect(unsigned.out.isEmpty)
      #expect(unsigned.errors.contains("hint: sign-in HANDLE, or sign-up HANDLE"))

      let typo = try await house.run(["chatz"])
      #expect(typo.status == 1)
      #expect(
        typo.errors == [
          "error: no such command: chatz", "  chatz", "  ^^^^^",
          "hint: did you mean chats? See: help chats",
        ])

      let wrong = try await house.run(["sign-up ana \(password)", "sign-in ana not-this-one"])
      #expect(wrong.status == 80)
      #expect(wrong.errors.first?.contains("UNAUTHENTICATED") == true, "\(wrong.errors)")

      let taken = try await house.run(["sign-up ana \(password)"])
      #expect(taken.status == 64 + 6)

      let going = try await house.run(
        ["chatz", "sign-in ana \(password)", "say nobody hi", "whoami"], keepGoing: true)
      #expect(going.status == 1)
      #expect(going.out.contains { $0.hasPrefix("ana  ") })
      #expect(going.errors.contains("error: no chat is called nobody"))

      let blank = try await house.run(["say ana \"  \""])
      #expect(blank.status == 1)
      #expect(blank.errors.first == "error: a blank message is not sent")
    }
  }

  @Test func waitingForEvents() async throws {
    try await with { house in
      _ = try await house.run([
        "sign-up ana \(password)", "sign-up ben \(password)", "chat new ana",
      ])
      _ = try await house.run(["sign-in ana \(password)"], on: "ana")
      // Messages said before the other side listens do not count for it, so say them until it
      // has seen enough.
      var said = 0
      let isDone = Mutex(false)
      let done = Task {
        defer { isDone.withLock { $0 = true } }
        return try await house.run(["wait 2 --timeout 20"], on: "ana")
      }
      while said < 200, !isDone.withLock({ $0 }) {
        said += 1
        _ = try await house.run(["say ana number \(said)"])
      }
      let result = try await done.value
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.out.count == 2)
      #expect(result.out.allSatisfy { $0.contains("] ben: number ") })

      let late = try await house.run(["wait --timeout 0.05"], on: "ana")
      #expect(late.status == 124)
      #expect(late.errors == ["error: 0 of 1 events came in time"])
    }
  }

  @Test func filesOfTheProfileAreTheUsersOwn() async throws {
    try await with { house in
      _ = try await house.run(["sign-up ana \(password)", "use container notes"])
      let profile = house.profile("one")
      #expect(profile.session(handle: "ana")?.handle == "ana")
      #expect(profile.place.container == "notes")
      var found = 0
      let folder = "\(house.folder)/one/default"
      let server = house.address.replacing(":", with: "_")
      for name in ["session-" + (profile.place.user.replacing("/", with: "_")), "place"] {
        var status = stat()
        #expect(stat("\(folder)/\(server)/\(name)", &status) == 0, "\(name)")
        #expect(status.st_mode & 0o777 == 0o600)
        found += 1
      }
      #expect(found == 2)
      profile.history = ["one", "two\nlines \\ and more"]
      #expect(house.profile("one").history == ["one", "two\nlines \\ and more"])
      _ = try await house.run(["sign-out"])
      #expect(profile.session(handle: "ana") == nil)
      #expect(try await house.run(["whoami"]).status == 80)
    }
  }

  @Test func optionsAreChecked() throws {
    #expect(
      try ConsoleOptions(["--server", "a:1", "-c", "x", "-c", "y", "--json"]).commands == [
        "x", "y",
      ])
    #expect(throws: ArgumentList.Fault.self) { try ConsoleOptions(["chats"]) }
    #expect(throws: ArgumentList.Fault.self) { try ConsoleOptions(["--jsno"]) }
    #expect(throws: ArgumentList.Fault.self) { try ConsoleOptions(["-c", "x", "-f", "y"]) }
    #expect(throws: ArgumentList.Fault.self) { try ConsoleOptions(["--server"]) }
  }
}

extension ScriptTests {
  @Test func recordsArePutQueriedAndWatched() async throws {
    try await with { house in
      let result = try await house.run([
        "sign-up ana \(password)", "use container notes", "zone new work",
        "put Note milk title=\"buy milk\" n=3", "put Note rent title=\"pay the rent\" n=9",
        "put Note call title=\"call Ben\" n=5 ref=>milk at=@2026-11-30T08:15:00Z loc=41.4,2.2",
        "query Note where n >= 5 order by n desc", "explain Note where n >= 5 order by n desc",
        "get call", "changes",
        // Watched in the background; each wait takes the next change.
        "watch query Note where n > 4", "put Note milk n=7", "wait --timeout 20",
        "put Note milk n=1", "wait --timeout 20", "delete call", "wait --timeout 20", "unwatch",
        "changes", "query Note where beginsWith(title, \"pay\")",
      ])
      #expect(result.status == 0, "\(result.errors)")
      let rows = result.out.filter { $0.hasPrefix("rent  ") || $0.hasPrefix("call  ") }
      #expect(
        rows.first?.hasPrefix("rent  Note") == true
          && rows.dropFirst().first?.hasPrefix("call") == true)
      #expect(result.out.contains { $0.hasPrefix("read ") && $0.hasSuffix(" rows for 2 records") })
      #expect(result.out.contains { $0.contains("SEARCH record_entry USING PRIMARY KEY") })
      #expect(result.out.contains("  loc    41.4,2.2"))
      #expect(result.out.contains("  ref    >milk"))
      #expect(result.out.contains("changed Note milk  n=7  title=\"buy milk\""))
      #expect(result.out.contains("matches no more  milk"))
      #expect(result.out.filter { $0 == "deleted Note call" }.count == 2)

      // The place is kept; values come back as protobuf JSON.
      let json = try await house.run(["query Note order by n", "zones"], json: true)
      #expect(json.status == 0, "\(json.errors)")
      #expect(json.out.count == 4)
      #expect(json.out[0].contains(#""n":{"int64Value":"1"}"#))

      let missing = try await house.run(["get nothing"])
      #expect(missing.status == 69)
      #expect(missing.errors.dropFirst().prefix(2) == ["  get nothing", "      ^^^^^^^"])
      let exists = try await house.run(["put Note milk n=1 --new"])
      #expect(exists.status == 64 + 10)
      #expect(exists.errors.last == "hint: see it as it is now: get NAME")
      #expect(try await house.run(["watch zone --count 1 --timeout 0.05"]).status == 124)
      #expect(try await house.run(["watch zone nowhere --timeout 5"]).status == 69)
    }
  }

  /// The server's settings have a variable of their own, `VENCEJO_CONFIG`, which names a file.
  @Test func profilesHaveAVariableOfTheirOwn() async throws {
    let house = try House()
    let folder = "\(house.folder)/elsewhere"
    let names = ["VENCEJO_PROFILES": folder, "VENCEJO_CONFIG": "\(house.folder)/vencejo.conf"]
    let profile = Profile(name: "p", server: "s", environment: names)
    #expect(profile.dataFolder == "\(folder)/p/s")
    #expect(access("\(house.folder)/vencejo.conf", F_OK) != 0)
    await house.close()
  }
}

import Testing
import VencejoAPI
import VencejoProtobuf
import VencejoRPC

@Suite struct AuthServerTests {
  @Test func accountsFromSignUpToSignOut() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      let user = try #require(
        try await ana.auth.getUser(.with { $0.name = "users/me" }, ana.options).user)
      #expect(user.name == ana.name)
      #expect(user.role == .administrator)
      #expect(user.handle == "ana")

      let again = try await ana.auth.signIn(
        .with {
          $0.credential = .password(
            .with {
              $0.identifier = "ana"; $0.password = "password of ana"
            })
        })
      let tokens = try #require(again.tokens)
      #expect(again.session?.name.hasPrefix(ana.name + "/sessions/") == true)
      let renewed = try #require(
        try await ana.auth.refreshSession(.with { $0.refreshToken = tokens.refreshToken }).tokens)
      #expect(renewed.refreshToken != tokens.refreshToken)
      _ = try await ana.auth.signOut(.init(), .bearer(renewed.accessToken))
      await expect(.unauthenticated, "SESSION_REVOKED", "auth.vencejo") {
        _ = try await ana.auth.getUser(
          .with { $0.name = "users/me" }, .bearer(renewed.accessToken))
      }
      // The other session lives on.
      _ = try await ana.auth.getUser(.with { $0.name = "users/me" }, ana.options)
    }
  }

  @Test func theServerIntroducesItselfToAnybody() async throws {
    try await withWorld { world in
      let info = try await Auth.AuthClient(world.channel()).getServerInfo(.init())
      #expect(info.signUpOpen)
      #expect(info.packages.contains("vencejo.chat.v1"))
      #expect(info.maxMessageBytes == 65_536)
      #expect((info.serverTime?.seconds ?? 0) > 1_700_000_000)
    }
  }

  @Test func everythingElseNeedsAToken() async throws {
    try await withWorld { world in
      let ana = try await world.person("ana")
      await expect(.unauthenticated, "MISSING_CREDENTIAL", "auth.vencejo") {
        _ = try await ana.auth.getUser(.with { $0.name = "users/me" })
      }
      await expect(.unauthenticated, "MISSING_CREDENTIAL") {
        _ = try await ana.chat.listChats(.init())
      }
      await expect(.unauthenticated, "BAD_CREDENTIAL") {
        _ = try await ana.chat.listChats(.init(), .bearer("nonsense"))
      }
      await expect(.unauthenticated, "MISSING_CREDENTIAL") {
        for try await _ in ana.chat.subscribe(.init()) {}
      }
      await expect(.unauthenticated, "BAD_CREDENTIAL", "auth.vencejo") {
        _ = try await ana.auth.signIn(
          .with {
            $0.credential = .password(
              .with {
                $0.identifier = "ana"; $0.password = "wrong"
              })
          })
      }
      await expect(.invalidArgument, "MISSING_CREDENTIAL", "auth.vencejo") {
        _ = try await ana.auth.signIn(.init())
      }
      await expect(.alreadyExists, "HANDLE_TAKEN", "auth.vencejo") {
        _ = try await world.person("ANA")
      }
      await expect(.invalidArgument, "BAD_HANDLE", "auth.vencejo") {
        _ = try await world.person("no such thing")
      }
    }
  }
}

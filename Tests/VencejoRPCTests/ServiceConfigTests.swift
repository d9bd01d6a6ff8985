import Testing
import VencejoHTTP2

@testable import VencejoRPC

/// gRPC's service_config.proto in its JSON form, and the targets of "Name Resolution".
@Suite("Service configs and targets")
struct ServiceConfigTests {
  @Test func everyFieldIsRead() throws {
    let config = try ServiceConfig(
      json: """
        {
          "methodConfig": [
            { "name": [{ "service": "a.B" }, { "service": "a.C", "method": "D" }],
              "waitForReady": true, "timeout": "1.5s",
              "maxRequestMessageBytes": 1000, "maxResponseMessageBytes": "2000",
              "retryPolicy": { "maxAttempts": 9, "initialBackoff": "0.1s", "maxBackoff": "3s",
                "backoffMultiplier": 1.5, "retryableStatusCodes": ["UNAVAILABLE", 10] } },
            { "name": [{}], "timeout": "0.000000001s" },
            { "name": [{ "service": "h.H" }],
              "hedgingPolicy": { "maxAttempts": 3, "hedgingDelay": "0.5s",
                "nonFatalStatusCodes": ["INTERNAL"] } }
          ],
          "retryThrottling": { "maxTokens": 20, "tokenRatio": 0.1239 },
          "loadBalancingConfig": [{ "grpclb": {} }, { "round_robin": {} }, { "pick_first": {} }],
          "healthCheckConfig": { "serviceName": "a.B" },
          "somethingOfALaterVersion": { "x": [1, 2] }
        }
        """)
    let own = try #require(config.method("/a.B/Anything"))
    #expect(own.waitForReady == true && own.timeout == .milliseconds(1_500))
    #expect(own.maxRequestBytes == 1_000 && own.maxResponseBytes == 2_000)
    // gRFC A6: more than five attempts are five.
    #expect(
      own.retry
        == RetryPolicy(
          maxAttempts: 5, initialBackoff: .milliseconds(100), maxBackoff: .seconds(3),
          backoffMultiplier: 1.5, retryableCodes: [.unavailable, .aborted]))
    #expect(config.method("/a.C/D")?.waitForReady == true)
    #expect(config.method("/a.C/E")?.timeout == .nanoseconds(1))
    let hedging = try #require(config.method("/h.H/X")?.hedging)
    #expect(hedging.maxAttempts == 3 && hedging.delay == .milliseconds(500))
    #expect(hedging.nonFatalCodes == [.internalError])
    // gRFC A6: three decimal places count.
    let inStrings = try ServiceConfig(
      json: "{\"retryThrottling\": {\"maxTokens\": \"20\", \"tokenRatio\": \"0.1\"}}")
    #expect(inStrings.throttling?.maxTokens == 20)
    #expect(config.throttling?.maxTokens == 20 && config.throttling?.tokenRatio == 0.123)
    #expect(config.balancing == .roundRobin && config.healthService == "a.B")
  }

  @Test func theEmptyConfigSaysNothing() throws {
    let config = try ServiceConfig(json: "{}")
    #expect(config.method("/a.B/C") == nil && config.balancing == nil)
    #expect(config.throttling == nil && config.healthService == nil)
  }

  @Test(arguments: [
    ("", "no JSON"), ("[]", "$"), ("{\"methodConfig\": {}}", "$.methodConfig"),
    ("{\"methodConfig\": [{\"name\": [{\"method\": \"M\"}]}]}", "without a service"),
    ("{\"methodConfig\": [{\"name\": [{}, {}]}]}", "twice"),
    ("{\"methodConfig\": [{\"timeout\": \"1\"}]}", "$.methodConfig[0].timeout"),
    ("{\"methodConfig\": [{\"timeout\": \"-1s\"}]}", "duration"),
    ("{\"methodConfig\": [{\"timeout\": \"1.0000000001s\"}]}", "duration"),
    ("{\"methodConfig\": [{\"timeout\": \"99999999999999999999s\"}]}", "duration"),
    ("{\"methodConfig\": [{\"waitForReady\": \"yes\"}]}", "true or false"),
    ("{\"methodConfig\": [{\"maxRequestMessageBytes\": -1}]}", "whole number"),
    (
      "{\"methodConfig\": [{\"retryPolicy\": {\"maxAttempts\": 1, \"initialBackoff\": \"1s\", "
        + "\"maxBackoff\": \"1s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [14]}}]}",
      "at least 2"
    ),
    (
      "{\"methodConfig\": [{\"retryPolicy\": {\"maxAttempts\": 2, \"initialBackoff\": \"0s\", "
        + "\"maxBackoff\": \"1s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [14]}}]}",
      "above 0"
    ),
    (
      "{\"methodConfig\": [{\"retryPolicy\": {\"maxAttempts\": 2, \"initialBackoff\": \"1s\", "
        + "\"maxBackoff\": \"1s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": []}}]}",
      "retryableStatusCodes"
    ),
    (
      "{\"methodConfig\": [{\"hedgingPolicy\": {\"maxAttempts\": 2, "
        + "\"nonFatalStatusCodes\": [\"NOPE\"]}}]}", "name of a status"
    ),
    ("{\"methodConfig\": [{\"hedgingPolicy\": {}}]}", "maxAttempts is missing"),
    ("{\"retryThrottling\": {\"maxTokens\": 0, \"tokenRatio\": 1}}", "maxTokens"),
    ("{\"retryThrottling\": {\"maxTokens\": 1001, \"tokenRatio\": 1}}", "maxTokens"),
    ("{\"retryThrottling\": {\"maxTokens\": 10, \"tokenRatio\": 0.0009}}", "tokenRatio"),
    ("{\"loadBalancingConfig\": [{\"grpclb\": {}}]}", "none of the policies"),
    ("{\"loadBalancingConfig\": [{\"pick_first\": {}, \"round_robin\": {}}]}", "one policy"),
    ("{\"loadBalancingPolicy\": \"best\"}", "unknown policy"),
    ("{\"healthCheckConfig\": {\"serviceName\": 1}}", "$.healthCheckConfig.serviceName"),
    ("{\"healthCheckConfig\": {}, \"healthCheckConfig\": {}}", "twice"),
  ])
  func whatIsWrongIsSaid(_ json: String, _ words: String) throws {
    do throws(RPCError) {
      _ = try ServiceConfig(json: json)
      Issue.record("accepted: \(json)")
    } catch {
      #expect(error.code == .invalidArgument)
      #expect(error.message.contains(words), "\(error.message)")
    }
  }

  /// RFC 8259: what is a JSON text, and what is none.
  @Test(arguments: [
    (#"{ "methodConfig" : [ ] , "a" : [ -0.5e+10 , 0 , 1E3 ] , "b" : { "c" : null } }"#, true),
    ("\t{\r\n}\n", true), (#"{"é": "\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"}"#, true),
    ("{", false), ("{}}", false), ("{} {}", false), ("{,}", false), (#"{"a":1,}"#, false),
    (#"{"a"}"#, false), (#"{"a":}"#, false), ("{a:1}", false), ("{'a':1}", false),
    (#"{"a":[1,]}"#, false), (#"{"a":[1 2]}"#, false), (#"{"a":[1}"#, false),
    (#"{"a":01}"#, false), (#"{"a":1.}"#, false), (#"{"a":.1}"#, false), (#"{"a":1e}"#, false),
    (#"{"a":-}"#, false), (#"{"a":+1}"#, false), (#"{"a":NaN}"#, false), (#"{"a":tru}"#, false),
    (#"{"a":nul"#, false), (#"{"a":"\x"}"#, false), (#"{"a":"\u12"}"#, false),
    (#"{"a":"\ud83d"}"#, false), (#"{"a":"\ude00"}"#, false), (#"{"a":"\ud83d\u0041"}"#, false),
    ("{\"a\":\"\n\"}", false), (#"{"a":""#, false), (#"{"a":"\"#, false), ("{\u{0}}", false),
  ])
  func jsonIsStrict(_ json: String, _ isGood: Bool) {
    let parsed: Bool
    do throws(RPCError) {
      _ = try ServiceConfig(json: json)
      parsed = true
    } catch {
      parsed = !error.message.contains("no JSON")
    }
    #expect(parsed == isGood, "\(json)")
  }

  @Test func jsonMayNestAHundredTimes() {
    for (depth, isGood) in [(100, true), (101, false), (100_000, false)] {
      let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      #expect(((try? ConfigJSON(parsing: text)) != nil) == isGood)
    }
  }

  /// Escapes and places.
  @Test func jsonStringsAreDecoded() throws {
    guard case .string(let text) = try ConfigJSON(parsing: #""é\u00e9\ud83d\ude00\"\\\/\n""#) else {
      Issue.record("no string")
      return
    }
    #expect(text == "éé😀\"\\/\n")
    #expect(throws: ConfigJSONParser.Fault.self) { try ConfigJSON(parsing: "1 x") }
  }

  @Test func aChannelRefusesAConfigThatIsNotValid() {
    var configuration = Channel.Configuration()
    configuration.serviceConfig = "{\"methodConfig\": 1}"
    #expect(throws: RPCError.self) { try Channel("127.0.0.1:1", configuration: configuration) }
  }

  // MARK: Targets

  private func known(_ text: String) throws -> [String]? {
    guard case .known(let addresses) = try Target(text).addresses else { return nil }
    return addresses.map { "\($0)" }
  }

  @Test func targetsOfEveryScheme() throws {
    #expect(try known("127.0.0.1:80") == ["127.0.0.1:80"])
    #expect(try known("ipv4:10.0.0.1:80,10.0.0.2:81") == ["10.0.0.1:80", "10.0.0.2:81"])
    #expect(try known("ipv6:[::1]:80,[fe80::1]:81") == ["[::1]:80", "[fe80::1]:81"])
    // gRPC "Name Resolution": without a port it is 443.
    #expect(try known("ipv4:10.0.0.1,10.0.0.2:81") == ["10.0.0.1:443", "10.0.0.2:81"])
    #expect(try known("ipv6:[::1],[::2]:81") == ["[::1]:443", "[::2]:81"])
    #expect(try known("ipv6:2001:db8::1") == ["[2001:db8::1]:443"])
    #expect(try known("unix:/tmp/x") == ["unix:/tmp/x"])
    #expect(try known("unix:///tmp/x") == ["unix:/tmp/x"])
    #expect(try known("unix-abstract:x") == ["unix-abstract:x"])
    for name in ["dns:///api.example:443", "dns:api.example", "api.example:1"] {
      let target = try Target(name)
      guard case .resolved(let resolver) = target.addresses else {
        Issue.record("\(name) is looked up")
        continue
      }
      #expect((resolver as? DNSResolver)?.host == "api.example")
      #expect(target.host == "api.example")
    }
    // IPv6's as well as IPv4's, as the system says.
    for name in ["localhost:80", "dns:///localhost:80"] { #expect(try known(name) == nil) }
    #expect(try Target("dns:api.example").authority == "api.example:443")
    #expect(try Target("ipv4:10.0.0.1:80,10.0.0.2:81").host == "10.0.0.1")
    #expect(try Target("ipv6:[::1]:80").host == "::1")
  }

  @Test(arguments: [
    "", "dns:", "dns:///", "dns://8.8.8.8/api.example:1", "ipv4:", "ipv4:[::1]:80", "ipv4:a:1",
    "ipv6:1.2.3.4:80", "ipv4:1.2.3.4:80,", "unix:", "unix-abstract:", "a b:1", "host",
    "host:0", "http://host:80",
  ])
  func badTargets(_ text: String) {
    #expect(throws: RPCError.self) { try Target(text) }
  }

  // MARK: Backoff

  /// "Connection Backoff Protocol": 1 s, 1.6 times as much each time, 120 s at most, a fifth
  /// more or less.
  @Test func delaysOfConnecting() {
    let backoff = Backoff()
    let seconds = { (failures: Int, random: Double) -> Double in
      Double(backoff.delay(afterFailures: failures, random: random).nanoseconds) / 1e9
    }
    for (failures, wanted) in [(0, 1.0), (1, 1.6), (2, 2.56), (3, 4.096), (11, 120), (500, 120)] {
      #expect(abs(seconds(failures, 0.5) - wanted) < 1e-6)
      #expect(abs(seconds(failures, 0) - wanted * 0.8) < 1e-6)
      #expect(abs(seconds(failures, 1) - wanted * 1.2) < 1e-6)
    }
    let odd = Backoff(
      initial: .seconds(1), multiplier: 1e300, jitter: 9, maximum: .seconds(1 << 40))
    for failures in 0..<5 { #expect(odd.delay(afterFailures: failures, random: 1) >= .zero) }
  }

  @Test func anAttemptMayTakeTwentySecondsAtLeast() {
    #expect(ConnectionConfiguration().connectTimeout == .seconds(20))
  }

  /// RFC 8305, section 4: families in turn, the first one's first.
  @Test func familiesTakeTurns() throws {
    let text = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]
    let addresses = try text.map { try SocketAddress(parsing: $0) }
    #expect(
      ConnectionAttempt.interleaved(addresses).map { "\($0)" }
        == ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"])
    #expect(ConnectionAttempt.interleaved([]).isEmpty)
  }
}

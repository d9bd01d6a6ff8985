import Testing
import VencejoTools

@Suite struct SettingsTests {
  private let options: [ArgumentList.Option] = [
    .init("listen", value: true), .init("log-level", value: true), .init("open-sign-up"),
  ]

  private func read(
    _ arguments: [String] = [], _ environment: [String: String] = [:], _ file: String? = nil
  ) throws -> ArgumentList {
    try Settings(prefix: "APP", environment: environment).filled(
      ArgumentList(arguments, options: options), options: options, repeatable: ["listen"],
      file: file.map { ("app.conf", $0) })
  }

  private func fault(_ environment: [String: String], _ file: String?) -> String {
    do {
      _ = try read([], environment, file)
      return ""
    } catch { return "\(error)" }
  }

  @Test func theNearestCounts() throws {
    let file = "log-level = file # comment\n\n# all of it\nopen-sign-up = true\n"
    let variable = ["APP_LOG_LEVEL": "variable"]
    #expect(try read(["--log-level", "flag"], variable, file)["log-level"] == "flag")
    #expect(try read([], variable, file)["log-level"] == "variable")
    #expect(try read([], [:], file)["log-level"] == "file")
    #expect(try read([], [:], file).has("open-sign-up"))
    #expect(try read([], ["APP_OPEN_SIGN_UP": "1"]).has("open-sign-up"))
    #expect(try read([], ["APP_OPEN_SIGN_UP": "false"], file).has("open-sign-up") == false)
  }

  @Test func listsReplaceOneAnother() throws {
    let file = "listen = a\nlisten = \"b\"\n"
    #expect(try read([], [:], file).all("listen") == ["a", "b"])
    #expect(try read([], ["APP_LISTEN": "x, y"], file).all("listen") == ["x", "y"])
    #expect(try read(["--listen", "z"], ["APP_LISTEN": "x"], file).all("listen") == ["z"])
  }

  @Test func whatIsNotUnderstoodIsNamed() {
    #expect(
      fault([:], "log-level = a\nlog-levle = b")
        == "app.conf:2: 'log-levle' is no setting (did you mean 'log-level'?)")
    #expect(fault([:], "colour = red") == "app.conf:1: 'colour' is no setting")
    #expect(fault([:], "log-level") == "app.conf:1: write name = value")
    #expect(fault([:], "log-level =") == "app.conf:1: log-level needs a value")
    #expect(fault([:], "log-level = a\nlog-level = b") == "app.conf:2: 'log-level' is there twice")
    #expect(
      fault([:], "open-sign-up = maybe")
        == "app.conf:1: open-sign-up is true or false, not 'maybe'")
    #expect(
      fault(["APP_LOG_LEVLE": "x"], nil)
        == "APP_LOG_LEVLE is no variable of ours (did you mean APP_LOG_LEVEL?)")
    // Another program's.
    #expect(fault(["APP_SOMETHING_ELSE": "x", "OTHER": "y"], nil) == "")
  }
}

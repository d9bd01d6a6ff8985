// SwiftPM wants at least one Swift file in a target; what the .proto files cannot say may stand
// there, such as conveniences for their types.
extension Greetings.Greeting {
  /// The first word of the text.
  public var firstWord: Substring { text.split { !$0.isLetter }.first ?? "" }
}

import VencejoDescriptors
import VencejoProtobuf

extension TextFormat {
  /// The fields of an encoded message whose type nobody knows, by number: what may be a message
  /// is shown as one. Throws for what is no message.
  public static func raw(
    _ bytes: [UInt8], _ options: TextOptions = .init()
  ) throws(TextError) -> String {
    var printer = TextPrinter(options, capacity: 2 * bytes.count + 256)
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      _ = printer.unknown(&reader, 0)
      return reader.error
    }
    if let error { throw TextError(message: "\(error)") }
    return printer.out.string()
  }
}

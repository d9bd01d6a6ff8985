import VencejoProtobuf

extension TextFormat {
  /// The fields of an encoded message whose type nobody knows, by number: what may be a message
  /// is shown as one. Throws for what is no message.
  public static func raw(
    _ bytes: [UInt8], _ options: TextOptions = .init()
  ) throws(TextError) -> String {
    var printer = TextPrinter(options: options)
    let error = bytes.withUnsafeBytes { buffer in
      var reader = WireReader(buffer)
      _ = UnknownPrinter.print(&reader, 0, to: &printer)
      return reader.error
    }
    if let error { throw TextError(message: "\(error)") }
    return printer.text
  }
}

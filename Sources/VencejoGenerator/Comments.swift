import VencejoProtobuf

/// The comments of a file by the path of what they belong to (see `SourceCodeInfo`).
struct Comments {
  private var texts: [[Int32]: String] = [:]

  init(_ file: Google.FileDescriptorProto) {
    for location in file.sourceCodeInfo?.location ?? [] {
      let comment = location.leadingComments ?? location.trailingComments
      guard let comment, !comment.isEmpty else { continue }
      texts[location.path] = Self.tidy(comment)
    }
  }

  subscript(path: [Int32]) -> String? { texts[path] }

  /// Without the blank after `//`, blanks at the ends of lines and empty lines around.
  private static func tidy(_ comment: String) -> String {
    var lines = comment.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      var line = line
      if line.first == " " { line.removeFirst() }
      while line.last == " " { line.removeLast() }
      return line
    }
    while lines.last?.isEmpty == true { lines.removeLast() }
    while lines.first?.isEmpty == true { lines.removeFirst() }
    return lines.joined(separator: "\n")
  }
}

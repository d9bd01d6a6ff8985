/// What stands behind the header of a message: a sender and a text, a file, a notice.
///
/// Words differ between languages; what they have in common is where they stand, the invisible
/// mark that iOS and newer Android phones write before what they say themselves, and that the same
/// words come again and again in one file.
struct WhatsAppBody {
  /// Texts in angle brackets alone that come more than once: media left out, in some language.
  private let repeated: Set<String>

  init(_ bodies: [String]) {
    var counts: [String: Int] = [:]
    for body in bodies {
      guard let colon = body.firstRange(of: ": ") else { continue }
      let text = WhatsAppExport.clean(String(body[colon.upperBound...])).trimmed
      if text.hasPrefix("<"), text.hasSuffix(">"), text.count < 60 { counts[text, default: 0] += 1 }
    }
    repeated = Set(counts.filter { $0.value > 1 }.keys)
  }

  func entry(_ whole: String, _ time: Int64) -> WhatsAppExport.Entry {
    let body = whole.trimmingNewlines
    func notice(_ text: String) -> WhatsAppExport.Entry {
      .init(
        sender: nil, text: WhatsAppExport.clean(text).trimmed, attachment: nil, localTime: time)
    }
    guard let colon = body.firstRange(of: ": ") ?? body.firstRangeOfFinalColon,
      let sender = Self.sender(String(body[..<colon.lowerBound]))
    else { return notice(body) }
    let text = String(body[colon.upperBound...])
    if let attachment = attachment(text) {
      return .init(
        sender: sender, text: attachment.caption, attachment: attachment.name, localTime: time)
    }
    let isMarked = text.isMarked
    var plain = WhatsAppExport.clean(text)
    if Self.isDeleted(plain.trimmed, isMarked) {
      var entry = WhatsAppExport.Entry(
        sender: sender, text: "", attachment: nil, localTime: time)
      entry.isDeleted = true
      return entry
    }
    // iOS writes notices under a name, behind a mark that nobody types. Polls, places and contacts
    // have it too, and are somebody's.
    if isMarked, !Self.isSomebodys(plain) { return notice(text) }
    var isEdited = false
    if let without = Self.withoutEditMark(plain) {
      plain = without
      isEdited = true
    }
    var entry = WhatsAppExport.Entry(
      sender: sender, text: plain, attachment: nil, localTime: time)
    entry.isEdited = isEdited
    return entry
  }

  /// The name before the colon; nil for the first half of a sentence with a colon in it.
  private static func sender(_ text: String) -> String? {
    var name = WhatsAppExport.clean(text).trimmed
    // Whom the phone's owner does not know: "~ Ana", on iOS with a narrow space.
    if name.hasPrefix("~") { name = String(name.dropFirst()).trimmed }
    guard !name.isEmpty, !name.contains("\n"), name.count <= 100,
      !name.contains(where: { "“”„«»\"".contains($0) })
    else { return nil }
    return name
  }

  // MARK: Files

  /// A file named or left out: `IMG-1.jpg (file attached)`, `<attached: 1.jpg>`, also behind a
  /// caption, `<Media omitted>`, `image omitted`, and what other languages make of them.
  private func attachment(_ text: String) -> (name: String, caption: String)? {
    let isMarked = text.isMarked
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    for (index, line) in lines.enumerated() {
      guard let found = Self.bracketed(line) else { continue }
      lines[index] = found.before
      let caption = WhatsAppExport.clean(
        lines.filter { !$0.trimmed.isEmpty }.joined(separator: "\n"))
      return (found.name, caption.trimmed)
    }
    let first = WhatsAppExport.clean(lines.removeFirst()).trimmed
    let caption = WhatsAppExport.clean(lines.joined(separator: "\n"))
    if first.hasPrefix("<"), first.hasSuffix(">"), !first.dropFirst().contains("<"),
      repeated.contains(first) || Self.saysLeftOut(first)
    {
      return ("", caption)
    }
    if let name = Self.named(first, isMarked) { return (name, caption) }
    if isMarked, first.count <= 60, Self.saysLeftOut(first) { return ("", caption) }
    return nil
  }

  /// `… <attached: name.ext>` at the end of a line.
  private static func bracketed(_ line: String) -> (name: String, before: String)? {
    let plain = WhatsAppExport.clean(line).trimmed
    guard plain.hasSuffix(">"), let open = plain.lastIndex(of: "<") else { return nil }
    let inside = plain[plain.index(after: open)...].dropLast()
    guard let colon = inside.firstIndex(of: ":") ?? inside.firstIndex(of: "：") else { return nil }
    let name = String(inside[inside.index(after: colon)...]).trimmed
    guard hasExtension(name), !name.contains("/") else { return nil }
    // "report.pdf • 3 pages" only says again what is attached.
    var before = String(plain[..<open]).trimmed
    if before.contains(" • ") || before == name { before = "" }
    return (name, before)
  }

  /// `name.ext (file attached)`.
  private static func named(_ first: String, _ isMarked: Bool) -> String? {
    guard first.hasSuffix(")") || first.hasSuffix("）"),
      let open = first.lastIndex(where: { $0 == "(" || $0 == "（" })
    else { return nil }
    let name = String(first[..<open]).trimmed
    let words = first[open...].lowercased()
    guard hasExtension(name) else { return nil }
    let isKnown = attachedWords.contains { words.contains($0) }
    return isMarked || isKnown || isPhonesOwn(name) ? name : nil
  }

  /// As Android names what it sends: `IMG-20231231-WA0001.jpg`.
  private static func isPhonesOwn(_ name: String) -> Bool {
    ["IMG-", "VID-", "AUD-", "PTT-", "STK-", "DOC-"].contains { name.hasPrefix($0) }
      && name.contains("-WA")
  }

  private static func hasExtension(_ name: String) -> Bool {
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
    let kind = name[name.index(after: dot)...]
    return (1...5).contains(kind.count)
      && kind.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  private static let attachedWords = [
    "attach", "adjunt", "angehängt", "anhang", "joint", "allegat", "anexad", "anexo", "bijgevoegd",
    "прикреп", "файл", "załącz", "ekli", "eklen", "dilamp", "vedh", "bifog", "liite", "csatol",
    "přilož", "ataşat", "επισυν", "đính kèm", "แนบ", "添付", "附件", "附加", "첨부", "مرفق", "مرفوع",
    "ملف", "מצורף", "פתוח", "संलग्न", "پیوست", "ضمیمه",
  ]

  private static let leftOutWords = [
    "omitted", "omitid", "omis", "omess", "absent", "assent", "weggelassen", "ausgeschlossen",
    "ausgelassen",
    "weggelaten",
    "ocultad", "não revelad", "excluíd", "пропущен", "без медиа", "исключен", "pominięt",
    "dahil edilme",
    "utelämn", "utelatt", "udelad", "kihagy", "vynech", "jätetty", "omise", "παραλείφθηκ",
    "εξαιρέθηκ",
    "bị bỏ qua", "đã bỏ qua", "dihilangkan", "disertakan", "省略", "忽略", "생략", "제외", "含まれて", "تم حذف",
    "استبعاد", "تم استبعاد", "حذف شد", "הושמט", "छोड़", "शामिल नहीं", "ละเว้น", "ไม่รวม", "media", "medien",
    "médias", "mídia", "медиа", "medya", "multimedia",
  ]

  private static func saysLeftOut(_ text: String) -> Bool {
    let folded = text.lowercased()
    return leftOutWords.contains { folded.contains($0) }
  }

  // MARK: Marks on a message

  private static let deletedTexts: Set<String> = [
    "this message was deleted", "you deleted this message", "this message was deleted by admin",
    "se eliminó este mensaje", "eliminaste este mensaje", "este mensaje fue eliminado",
    "este mensaje ha sido eliminado", "diese nachricht wurde gelöscht",
    "du hast diese nachricht gelöscht", "ce message a été supprimé", "ce message a été effacé",
    "vous avez supprimé ce message", "vous avez effacé ce message",
    "questo messaggio è stato eliminato", "hai eliminato questo messaggio",
    "mensagem apagada", "esta mensagem foi apagada", "você apagou esta mensagem",
    "apagou esta mensagem", "dit bericht is verwijderd", "je hebt dit bericht verwijderd",
    "u hebt dit bericht verwijderd", "сообщение удалено", "данное сообщение удалено",
    "вы удалили данное сообщение", "вы удалили это сообщение", "wiadomość usunięta",
    "ta wiadomość została usunięta", "usunięto tę wiadomość", "bu mesaj silindi",
    "bu mesajı sildiniz", "pesan ini telah dihapus", "anda telah menghapus pesan ini",
    "此消息已删除", "您已删除此消息", "此訊息已刪除", "您已刪除此訊息",
    "このメッセージは削除されました", "このメッセージを削除しました", "삭제된 메시지입니다", "이 메시지가 삭제되었습니다",
    "تم حذف هذه الرسالة", "لقد حذفت هذه الرسالة", "هذه الرسالة محذوفة", "הודעה זו נמחקה",
    "מחקת הודעה זו",
    "यह मैसेज मिटाया गया", "यह संदेश हटा दिया गया था", "यह संदेश हटा दिया गया है",
    "यह संदेश हटा दिया गया", "आपने यह संदेश हटा दिया", "you deleted this message as admin",
    "このメッセージは消去されました", "meddelandet raderades",
    "du raderade det här meddelandet",
  ]

  private static func isDeleted(_ text: String, _ isMarked: Bool) -> Bool {
    guard text.count <= 60 else { return false }
    var folded = text.lowercased()
    while let last = folded.last, ".!。".contains(last) { folded.removeLast() }
    return deletedTexts.contains(folded)
      || folded.hasPrefix("this message was deleted by admin ")
  }

  private static let editedWords = [
    "edited", "edit", "bearbeitet", "modifié", "modificat", "bewerkt", "изменен", "изменён",
    "edytowan",
    "düzenlen", "diedit", "redigera", "redigeret", "muokat", "upraven", "szerkeszt", "编辑", "編輯",
    "編集",
    "수정", "تعديل", "נערכה", "संपादित", "แก้ไข", "chỉnh sửa", "ویرایش",
  ]

  /// The text before `<This message was edited>`.
  private static func withoutEditMark(_ text: String) -> String? {
    guard text.hasSuffix(">"), let open = text.lastIndex(of: "<") else { return nil }
    let inside = text[open...].lowercased()
    guard inside.count <= 60, editedWords.contains(where: { inside.contains($0) }) else {
      return nil
    }
    return String(text[..<open]).trimmed
  }

  /// Behind iOS's mark and yet no notice: `POLL:` in capitals with options below it, `Location:`
  /// with an address of a map.
  private static func isSomebodys(_ text: String) -> Bool {
    let lines = text.split(separator: "\n")
    if lines.count > 2, let first = lines.first, first.trimmed.hasSuffix(":") { return true }
    return text.contains("https://")
  }
}

extension StringProtocol {
  /// Without spaces of any kind at the ends.
  fileprivate var trimmed: String {
    var text = Substring(self)
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text)
  }
}

extension String {
  /// Behind a mark that turns the writing left to right: the phone's own words.
  fileprivate var isMarked: Bool { unicodeScalars.first == "\u{200E}" }

  fileprivate var trimmingNewlines: String {
    var text = Substring(self)
    while text.last?.isNewline == true { text.removeLast() }
    return String(text)
  }

  /// `Name:` and nothing more: a message that was empty, or all of it an image.
  fileprivate var firstRangeOfFinalColon: Range<String.Index>? {
    guard last == ":", !contains("\n") else { return nil }
    return index(before: endIndex)..<endIndex
  }
}

import Testing
import VencejoTools

@testable import VencejoConsole

@Suite struct CellWidthTests {
  /// Widths from Unicode's EastAsianWidth.txt and emoji-sequences.txt.
  @Test(arguments: [
    ("a", 1), ("ñ", 1), ("e\u{301}", 1), ("漢", 2), ("カ", 2), ("ｶ", 1), ("한", 2),
    ("\u{1112}\u{1161}\u{11AB}", 2), ("👍", 2), ("👍🏽", 2), ("👩‍👩‍👧", 2), ("🇪🇸", 2), ("❤️", 2),
    ("1️⃣", 2), ("\u{200B}", 0), ("Ａ", 2), ("—", 1), ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 2),
  ])
  func widths(text: String, cells: Int) {
    #expect(CellWidth.of(text) == cells)
  }

  @Test func wrappingBreaksBetweenWordsAndWideCells() {
    #expect(Wrapping.wrapped("uno dos tres", to: 8) == ["uno dos", "tres"])
    #expect(Wrapping.wrapped("漢字漢字", to: 5) == ["漢字", "漢字"])
    #expect(Wrapping.wrapped("abcdefgh", to: 3) == ["abc", "def", "gh"])
    #expect(Wrapping.wrapped("a\n\nb", to: 5) == ["a", "", "b"])
    #expect(Wrapping.wrapped("", to: 5) == [""])
    #expect(Wrapping.truncated("漢字漢字", to: 6) == "漢字…")
    #expect(Wrapping.padded("漢", to: 4) == "漢  ")
  }

  @Test func foreignTextCannotSteerTheTerminal() {
    #expect(VisibleText.clean("a\u{1B}[2Jb\u{9B}c\u{202E}d\r\ne") == "a␛[2Jb\u{FFFD}cd e")
    #expect(VisibleText.clean("a\nb", keepingLines: true) == "a\nb")
  }

  @Test(arguments: ["", " ", "\t\n", "\u{200B}", "\u{3164}", "\u{2800}", "\u{FEFF} ", "\u{3000}"])
  func blank(text: String) { #expect(VisibleText.isBlank(text)) }

  @Test(arguments: ["a", ".", "👍", " x "])
  func notBlank(text: String) { #expect(!VisibleText.isBlank(text)) }
}

extension CellWidthTests {
  @Test func doubtCountsTheParts() {
    #expect(CellWidth.doubt("hola 漢字 é") == 0)
    // Two cells for each of three people, joined to one picture of two.
    #expect(CellWidth.doubt("👩‍👩‍👧") == 4)
    #expect(CellWidth.doubt("a👍🏽b") == 2)
  }
}

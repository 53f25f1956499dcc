#include "stage/tokens/text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_handle.h"
#include "base/utf8.h"

namespace stagecoach {

namespace {

absl::Status ForParts(ReadBytes read, size_t most, CutSpace space,
                      absl::FunctionRef<absl::Status(const LineReader::Part&)> take) {
  LineReader lines([read](std::span<uint8_t> into) { return read(into); }, most, space);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<LineReader::Part> part, lines.Next());
    if (!part.has_value()) return absl::OkStatus();
    if (!IsUtf8Text(part->text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", lines.line(),
                       " is not UTF-8, or has a zero byte; convert the text to UTF-8 first (iconv "
                       "-t UTF-8)"));
    }
    RETURN_IF_ERROR(take(*part));
  }
}

// Spaces of Unicode beyond ASCII, but for those that kSigns has.
constexpr std::string_view kSpaces[] = {"\u0085", "\u00a0", "\u1680"};
// First bytes of characters that are mostly signs and spaces: U+2000 to U+2FFF, U+3000 to U+303F.
constexpr std::string_view kSigns[] = {"\xe2", "\xe3\x80"};

bool IsSpaceAt(std::string_view text, size_t at) {
  return at < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[at]));
}

bool BeginsWithSign(std::string_view text) {
  return std::ranges::any_of(kSigns, [text](auto sign) { return text.starts_with(sign); });
}

// Whether a tokenizer's piece ends at the line end whatever word stands behind it. Several spaces in a
// row may be pieces that depend on what is behind them, and some tokenizers have signs behind line ends.
bool EndsWord(std::string_view text) {
  if (!text.ends_with('\n') || text.size() < 2) return false;
  text.remove_suffix(1);
  if (static_cast<unsigned char>(text.back()) < 0x80) {
    return absl::ascii_isgraph(static_cast<unsigned char>(text.back()));
  }
  for (const std::string_view space : kSpaces) {
    if (text.ends_with(space)) return false;
  }
  return text.size() < 3 || !BeginsWithSign(text.substr(text.size() - 3));
}

bool BeginsWord(std::string_view line) {
  if (line.empty()) return false;
  const auto first = static_cast<unsigned char>(line[0]);
  if (first < 0x80) return absl::ascii_isalnum(first);
  for (const std::string_view space : kSpaces) {
    if (line.starts_with(space)) return false;
  }
  return !BeginsWithSign(line);
}

}  // namespace

absl::Status ReadLines(ReadBytes read, size_t most, TakeLine take, CutSpace space) {
  return ForParts(read, most, space,
                  [take](const LineReader::Part& part) { return take(part.text, part.ends); });
}

absl::Status ReadText(ReadBytes read, size_t most, TakeLine take) {
  constexpr size_t kMostParts = 8;  // without a place between two words
  std::string text;
  bool any = false, new_line = true;
  const auto take_first = [&](size_t bytes) -> absl::Status {
    RETURN_IF_ERROR(take(std::string_view(text).substr(0, bytes), false));
    text.erase(0, bytes);
    return absl::OkStatus();
  };
  // Where the text is cut in front of a line; 0: nowhere yet.
  const auto place = [&](std::string_view line) -> size_t {
    if (!new_line || text.size() < most) return 0;
    if (EndsWord(text) && BeginsWord(line)) return text.size();
    if (text.size() < 2 * most) return 0;
    const TextCut cut = CutText(text, text.size() - 1, CutSpace::kBeginsPart);
    const bool between = text[cut.part] == ' ' && cut.part > 0 && !IsSpaceAt(text, cut.part - 1) &&
                         !IsSpaceAt(text, cut.part + 1);
    if (between) return cut.part;
    return text.size() >= kMostParts * most ? text.size() : 0;
  };
  const auto join = [&](const LineReader::Part& part) -> absl::Status {
    if (const size_t bytes = place(part.text); bytes > 0) RETURN_IF_ERROR(take_first(bytes));
    any = true;
    text += part.text;
    text += part.end;
    new_line = part.ends;
    // The rest of a line that is longer than a part begins with a word.
    return part.ends ? absl::OkStatus() : take_first(text.size());
  };
  RETURN_IF_ERROR(ForParts(read, most, CutSpace::kBeginsPart, join));
  return any ? take(text, true) : absl::OkStatus();
}

absl::StatusOr<size_t> ReadDescriptor(int descriptor, std::span<uint8_t> into) {
  while (true) {
    const ssize_t got = read(descriptor, into.data(), into.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "read");
  }
}

absl::Status ReadLinesOf(const std::string& path, size_t most, TakeLine take, CutSpace space) {
  const std::string shown = ShownName(path);
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return absl::ErrnoToStatus(errno, shown);
  struct stat information;
  if (fstat(file.get(), &information) != 0) return absl::ErrnoToStatus(errno, shown);
  if (S_ISDIR(information.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(shown, ": is a folder; name its files"));
  }
  const auto read_more = [&](std::span<uint8_t> into) { return ReadDescriptor(file.get(), into); };
  return Annotate(ReadLines(read_more, most, take, space), shown);
}

}  // namespace stagecoach

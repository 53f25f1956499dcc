#include "services/cli/scores/line_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/line_reader.h"
#include "base/utf8.h"
#include "scores/code_points.h"

namespace stagecoach {
namespace {

absl::Status FileError(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(ShownName(name), ": ", why));
}

// head: the first bytes of the text.
absl::Status NotUtf8(std::string_view head, const std::string& name, int64_t line) {
  if (const auto kind = FileKindOf(head); kind.has_value() && kind->form == FileKind::Form::kData) {
    return FileError(name, absl::StrCat("is ", OtherKindText(head, "a text file")));
  }
  return FileError(absl::StrCat(name, ":", line),
                   "not UTF-8 text, or has a NUL; convert the file first (iconv -t UTF-8)");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadLineFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return FileError(path, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return FileError(path, "is a folder; name a file in it");
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path, std::strerror(errno));
  return ReadLines(file, path);
}

absl::StatusOr<std::vector<std::string>> ReadLines(std::istream& stream, const std::string& name,
                                                   int64_t most) {
  const auto read = [&stream](std::span<uint8_t> into) -> absl::StatusOr<size_t> {
    stream.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (stream.bad()) return absl::InvalidArgumentError("cannot be read");
    return static_cast<size_t>(stream.gcount());
  };
  LineReader reader(read, static_cast<size_t>(most));
  std::vector<std::string> lines;
  std::string head;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<LineReader::Part> line,
                     Annotate(reader.Next(), ShownName(name)));
    if (reader.text_bytes() > most) {
      return FileError(name, absl::StrCat("has more than ", most, " bytes",
                                          reader.packed() ? ", unpacked" : ""));
    }
    if (!line.has_value()) break;
    if (head.size() < kFileKindBytes) (head += line->text) += '\n';
    if (!IsUtf8Text(line->text)) return NotUtf8(head, name, reader.line());
    lines.emplace_back(WithoutTrailingSpace(line->text));
  }
  if (lines.empty()) return FileError(name, "is empty");
  return lines;
}

}  // namespace stagecoach

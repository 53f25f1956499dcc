#include "services/cli/scores/line_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/gzip.h"
#include "base/utf8.h"
#include "scores/code_points.h"

namespace stagecoach {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

absl::Status FileError(const std::string& name, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(ShownName(name), ": ", why));
}

std::string TooLarge(int64_t most) { return absl::StrCat("has more than ", most, " bytes"); }

absl::StatusOr<std::string> ReadAll(std::istream& stream, const std::string& name, int64_t most) {
  std::string text, piece(kPiece, '\0');
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<size_t>(stream.gcount()));
    if (std::ssize(text) > most) return FileError(name, TooLarge(most));
  }
  if (stream.bad()) return FileError(name, "cannot be read");
  return text;
}

absl::StatusOr<std::string> Unpacked(std::string_view packed, const std::string& name,
                                     int64_t most) {
  GunzipMembers members;
  std::span<const uint8_t> left(reinterpret_cast<const uint8_t*>(packed.data()), packed.size());
  std::string text, piece(kPiece, '\0');
  while (true) {
    ASSIGN_OR_RETURN(
        const GunzipMembers::Done done,
        Annotate(members.Unpack(left, {reinterpret_cast<uint8_t*>(piece.data()), piece.size()}),
                 ShownName(name)));
    left = left.subspan(done.read);
    text.append(piece, 0, done.written);
    if (std::ssize(text) > most) return FileError(name, absl::StrCat(TooLarge(most), ", unpacked"));
    if (done.other) return FileError(name, "has something else behind its gzip data");
    if (done.written < piece.size() && left.empty()) break;
  }
  if (!members.ended()) {
    return absl::DataLossError(absl::StrCat(ShownName(name), ": its gzip data ends too soon"));
  }
  return text;
}

absl::Status NotUtf8(std::string_view text, const std::string& name, int64_t line) {
  const std::string_view head = text.substr(0, kFileKindBytes);
  if (const auto kind = FileKindOf(head); kind.has_value() && kind->form == FileKind::Form::kData) {
    return FileError(name, absl::StrCat("is ", OtherKindText(head, "a text file")));
  }
  return FileError(absl::StrCat(name, ":", line),
                   "not UTF-8 text, or has a NUL; convert the file first (iconv -t UTF-8)");
}

absl::StatusOr<std::vector<std::string>> LinesOf(std::string_view text, const std::string& name) {
  if (text.empty()) return FileError(name, "is empty");
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (!IsUtf8Text(line)) return NotUtf8(text, name, std::ssize(lines) + 1);
    lines.emplace_back(WithoutTrailingSpace(line));
    begin = end + 1;
  }
  return lines;
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
  ASSIGN_OR_RETURN(std::string text, ReadAll(stream, name, most));
  if (LooksLikeGzip(text)) {
    ASSIGN_OR_RETURN(text, Unpacked(text, name, most));
  }
  return LinesOf(text, name);
}

}  // namespace stagecoach

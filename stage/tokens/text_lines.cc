#include "stage/tokens/text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_handle.h"
#include "base/utf8.h"

namespace stagecoach {

absl::Status ReadLines(ReadBytes read, size_t most, TakeLine take, CutSpace space) {
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
    RETURN_IF_ERROR(take(part->text, part->ends));
  }
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

#include "stage/tokens/text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_handle.h"
#include "base/files/gzip.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

class LineCutter {
 public:
  LineCutter(size_t most, TakeLine take) : most_(most), take_(take) {}

  absl::Status Add(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const bool ends = end != bytes.npos;
      line_.append(bytes.substr(0, end));
      bytes.remove_prefix(ends ? end + 1 : bytes.size());
      RETURN_IF_ERROR(CutLong());
      if (ends) RETURN_IF_ERROR(Take(line_, true));
      if (ends) line_.clear();
      open_ = !ends;
    }
    return absl::OkStatus();
  }
  absl::Status Finish() { return open_ ? Take(line_, true) : absl::OkStatus(); }

 private:
  absl::Status CutLong() {
    if (line_.size() <= most_) return absl::OkStatus();
    std::string_view left = line_;
    while (left.size() > most_) {
      size_t end = left.rfind(' ', most_);
      const bool at_space = end != left.npos && end > 0;
      if (!at_space) {
        end = most_;
        // A character has three bytes behind its first one, at most.
        while (end > most_ - 3 && (static_cast<uint8_t>(left[end]) & 0xc0) == 0x80) --end;
      }
      RETURN_IF_ERROR(Take(left.substr(0, end), false));
      left.remove_prefix(at_space ? end + 1 : end);
    }
    line_.erase(0, line_.size() - left.size());
    return absl::OkStatus();
  }

  absl::Status Take(std::string_view part, bool ends) {
    if (ends && part.ends_with('\r')) part.remove_suffix(1);
    if (!IsUtf8Text(part)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number_,
                       " is not UTF-8, or has a zero byte; convert the text to UTF-8 first (iconv "
                       "-t UTF-8)"));
    }
    RETURN_IF_ERROR(take_(part, ends));
    if (ends) ++number_;
    return absl::OkStatus();
  }

  const size_t most_;
  const TakeLine take_;
  std::string line_;   // so far, without the parts that were taken
  bool open_ = false;  // a line has begun; it may be empty, as all of it was taken
  int64_t number_ = 1;
};

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Unpacks what follows of a gzip file.
class Unpacker {
 public:
  absl::Status Add(std::span<const uint8_t> packed, LineCutter* lines) {
    // A member's end may need a call with room for one byte more.
    for (bool full = true; full || !packed.empty();) {
      ASSIGN_OR_RETURN(const GunzipMembers::Done done, members_.Unpack(packed, room_));
      if (done.other) return absl::DataLossError("bytes that are no gzip data follow its end");
      packed = packed.subspan(done.read);
      full = done.written == room_.size();
      RETURN_IF_ERROR(lines->Add(TextOf(std::span(room_).first(done.written))));
    }
    return absl::OkStatus();
  }
  absl::Status Finish() const {
    return members_.ended() ? absl::OkStatus()
                            : absl::DataLossError("the gzip data ends early; the file was cut");
  }

 private:
  GunzipMembers members_;
  std::vector<uint8_t> room_ = std::vector<uint8_t>(kReadBytes);
};

}  // namespace

absl::Status ReadLines(ReadBytes read, size_t most, TakeLine take) {
  LineCutter lines(most, take);
  std::optional<Unpacker> unpacker;
  std::vector<uint8_t> piece(kReadBytes);
  bool first = true;
  while (true) {
    ASSIGN_OR_RETURN(size_t count, read(piece));
    // A pipe may give its first byte alone, which does not show what it is.
    while (first && count == 1) {
      ASSIGN_OR_RETURN(const size_t more, read(std::span(piece).subspan(1)));
      if (more == 0) break;
      count += more;
    }
    if (count == 0) break;
    const std::span<const uint8_t> bytes = std::span(piece).first(count);
    if (first && LooksLikeGzip(TextOf(bytes))) unpacker.emplace();
    first = false;
    RETURN_IF_ERROR(unpacker ? unpacker->Add(bytes, &lines) : lines.Add(TextOf(bytes)));
  }
  if (unpacker) RETURN_IF_ERROR(unpacker->Finish());
  return lines.Finish();
}

absl::StatusOr<size_t> ReadDescriptor(int descriptor, std::span<uint8_t> into) {
  while (true) {
    const ssize_t got = read(descriptor, into.data(), into.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "read");
  }
}

absl::Status ReadLinesOf(const std::string& path, size_t most, TakeLine take) {
  const std::string shown = ShownName(path);
  const FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return absl::ErrnoToStatus(errno, shown);
  struct stat information;
  if (fstat(file.get(), &information) != 0) return absl::ErrnoToStatus(errno, shown);
  if (S_ISDIR(information.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(shown, ": is a folder; name its files"));
  }
  const auto read_more = [&](std::span<uint8_t> into) { return ReadDescriptor(file.get(), into); };
  return Annotate(ReadLines(read_more, most, take), shown);
}

}  // namespace stagecoach

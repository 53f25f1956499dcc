#include "stage/data/formats/tar_members.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kMostExtension = int64_t{1} << 20;
constexpr int64_t kMostMember = int64_t{1} << 50;
using Block = std::array<uint8_t, kBlock>;

// Where a header has what: offset and size.
constexpr std::pair<size_t, size_t> kName{0, 100}, kSize{124, 12}, kChecksum{148, 8},
    kPrefix{345, 155};
constexpr size_t kType = 156, kMagic = 257;

std::string_view FieldOf(const Block& block, std::pair<size_t, size_t> field) {
  return {reinterpret_cast<const char*>(block.data()) + field.first, field.second};
}
std::string TextOf(const Block& block, std::pair<size_t, size_t> field) {
  const std::string_view text = FieldOf(block, field);
  return std::string(text.substr(0, std::min(text.find('\0'), text.size())));
}

// Octal digits, or, where the first bit is set, a number of base 256.
std::optional<int64_t> NumberOf(std::string_view field) {
  int64_t number = 0;
  if ((static_cast<uint8_t>(field.front()) & 0x80) != 0) {
    for (size_t i = 0; i < field.size(); ++i) {
      const uint8_t byte = static_cast<uint8_t>(field[i]) & (i == 0 ? 0x7f : 0xff);
      if (number > kMostMember) return std::nullopt;
      number = number << 8 | byte;
    }
    return number > kMostMember ? std::nullopt : std::optional(number);
  }
  size_t at = 0;
  while (at < field.size() && field[at] == ' ') ++at;
  const size_t first = at;
  while (at < field.size() && field[at] >= '0' && field[at] <= '7') {
    number = number << 3 | (field[at++] - '0');
  }
  const bool ended = at == field.size() || field[at] == ' ' || field[at] == '\0';
  // Nothing but blanks is 0, as others read it.
  const bool blank =
      at == first && std::all_of(field.begin() + static_cast<int64_t>(at), field.end(),
                                 [](char c) { return c == ' ' || c == '\0'; });
  return (at > first && ended) || blank ? std::optional(number) : std::nullopt;
}

bool ChecksumFits(const Block& block) {
  const std::optional<int64_t> stated = NumberOf(FieldOf(block, kChecksum));
  int64_t sum = 0, signed_sum = 0;  // old programs took bytes for signed
  for (size_t i = 0; i < block.size(); ++i) {
    const bool inside = i >= kChecksum.first && i < kChecksum.first + kChecksum.second;
    sum += inside ? ' ' : block[i];
    signed_sum += inside ? ' ' : static_cast<int8_t>(block[i]);
  }
  return stated == sum || stated == signed_sum;
}

bool IsZero(const Block& block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t byte) { return byte == 0; });
}

bool IsFile(const Block& block) {
  const char type = static_cast<char>(block[kType]);
  // A folder of Unix 7 tells itself by its name.
  if (type == '\0') return !absl::EndsWith(TextOf(block, kName), "/");
  // '7' was meant for files that lie in one piece.
  return type == '0' || type == '7';
}

int64_t InBlocks(int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

}  // namespace

absl::Status TarMembers::CutOff(const std::string& what) const {
  return absl::DataLossError(absl::StrCat(file_->Where(), ": cut off: ", what, " at offset ",
                                          offset_, ", and the file has ", file_->size(),
                                          " bytes; give the whole file"));
}

absl::Status TarMembers::NoHeader(const absl::Status& error) const {
  const std::string kind = offset_ == 0 ? file_->OtherKind("a tar file") : "";
  // A damaged header is one all the same.
  if (kind.empty() || absl::StartsWith(kind, "a tar archive")) return error;
  return absl::DataLossError(absl::StrCat(file_->Where(), ": ", kind));
}

absl::Status TarMembers::Sparse() const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->Where(), ": the member at offset ", offset_,
                   " is a sparse file; write the tar file without --sparse"));
}

absl::Status TarMembers::ForAll(const std::string& key) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->Where(), ": the pax header at offset ", offset_, " has one ", key,
                   " for all members behind it; write the tar file without it"));
}

absl::Status TarMembers::Damaged() const {
  return absl::DataLossError(absl::StrCat(file_->Where(), ": the pax header at offset ", offset_,
                                          " is damaged; give a whole tar file"));
}

absl::StatusOr<std::optional<TarMember>> TarMembers::Next() {
  long_name_.clear();
  long_size_.reset();
  while (true) {
    Block block;
    if (offset_ + kBlock > file_->size()) return NoHeader(CutOff("no end is marked"));
    RETURN_IF_ERROR(file_->ReadAt(offset_, block));
    if (IsZero(block)) return std::nullopt;
    const std::optional<int64_t> stated = NumberOf(FieldOf(block, kSize));
    if (!ChecksumFits(block) || !stated.has_value()) {
      return NoHeader(
          absl::DataLossError(absl::StrCat(file_->Where(), ": at offset ", offset_,
                                           " stands no tar header; give a whole tar file")));
    }
    const char type = static_cast<char>(block[kType]);
    if (type == 'S') return Sparse();
    // 'X' is Solaris' name of 'x'.
    const bool extends = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
    const bool file = IsFile(block);
    // Of links, devices and folders the size means something else, or nothing.
    const bool content = file || (type != '\0' && (type < '1' || type > '6'));
    const int64_t bytes = extends ? *stated : content ? long_size_.value_or(*stated) : 0;
    if (bytes > kMostMember || bytes > file_->size() - offset_ - kBlock) {
      return CutOff(absl::StrCat("a member of ", bytes, " bytes"));
    }
    if (extends) RETURN_IF_ERROR(ReadExtension(type, bytes));
    TarMember member{.name = TextOf(block, kName), .offset = offset_ + kBlock, .bytes = bytes};
    if (FieldOf(block, {kMagic, 5}) == "ustar") {
      const std::string prefix = TextOf(block, kPrefix);
      // GNU tar has other things there, behind another magic.
      const bool posix = block[kMagic + 5] == 0;
      if (posix && !prefix.empty()) member.name = absl::StrCat(prefix, "/", member.name);
    }
    if (!long_name_.empty()) member.name = long_name_;
    offset_ += kBlock + InBlocks(bytes);
    member.link = type == '1' || type == '2';
    if (file || member.link) return member;
    if (!extends) {
      long_name_.clear();
      long_size_.reset();
    }
  }
}

absl::Status TarMembers::ReadExtension(char type, int64_t bytes) {
  if (bytes > kMostExtension) {
    return absl::InvalidArgumentError(absl::StrCat(file_->Where(), ": the header at offset ",
                                                   offset_, " has a name of ", bytes, " bytes"));
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  RETURN_IF_ERROR(file_->ReadAt(offset_ + kBlock,
                                std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  if (type == 'L' && long_name_.empty()) long_name_ = text.substr(0, text.find('\0'));
  return type == 'L' || type == 'K' ? absl::OkStatus() : ReadPax(text, type == 'g');
}

// Lines of "length key=value\n", where the length counts itself; zeros may stand behind them.
absl::Status TarMembers::ReadPax(const std::string& text, bool global) {
  std::string name;
  std::optional<int64_t> stated;
  for (std::string_view left = text; !left.empty() && left.front() != '\0';) {
    size_t length = 0;
    const size_t blank = left.find(' ');
    if (blank == std::string_view::npos ||
        !absl::SimpleAtoi(std::string(left.substr(0, blank)), &length) || length <= blank + 1 ||
        length > left.size()) {
      return Damaged();
    }
    const std::string_view line = left.substr(blank + 1, length - blank - 2);
    left.remove_prefix(length);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return Damaged();
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) return Sparse();
    if (key != "path" && key != "size") continue;
    if (global) return ForAll(std::string(key));
    if (key == "path") {
      name = std::string(value.substr(0, value.find_last_not_of('/') + 1));
      if (name.empty()) return Damaged();
    } else {
      stated.emplace();
      if (!absl::SimpleAtoi(std::string(value), &*stated) || *stated < 0) return Damaged();
    }
  }
  if (long_name_.empty()) long_name_ = std::move(name);
  if (!long_size_.has_value()) long_size_ = stated;
  return absl::OkStatus();
}

}  // namespace stagecoach

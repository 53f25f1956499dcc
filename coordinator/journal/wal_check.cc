#include "coordinator/journal/wal_check.h"

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr size_t kHeaderBytes = 32, kFrameHeaderBytes = 24;
constexpr uint32_t kUsualPage = 4096;    // SQLite's, which nobody here changes
constexpr uint32_t kMagic = 0x377f0682;  // the last bit: words of checksums are big-endian

uint32_t BigEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t LittleEndian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

using Pair = std::array<uint32_t, 2>;

Pair PairAt(std::string_view bytes, size_t at) {
  return {BigEndian(bytes, at), BigEndian(bytes, at + 4)};
}

struct Log {
  std::string bytes;
  uint32_t page_size = 0;
  bool big_endian = false;
  Pair salt{}, header_sum{};

  size_t frame_bytes() const { return kFrameHeaderBytes + page_size; }
  size_t frames() const { return (bytes.size() - kHeaderBytes) / frame_bytes(); }
  std::string_view Frame(size_t i) const {
    return std::string_view(bytes).substr(kHeaderBytes + i * frame_bytes(), frame_bytes());
  }
  Pair Sum(Pair sum, std::string_view data) const {
    for (size_t i = 0; i + 8 <= data.size(); i += 8) {
      sum[0] += (big_endian ? BigEndian(data, i) : LittleEndian(data, i)) + sum[1];
      sum[1] += (big_endian ? BigEndian(data, i + 4) : LittleEndian(data, i + 4)) + sum[0];
    }
    return sum;
  }
  bool OfThisLog(size_t i) const { return PairAt(Frame(i), 8) == salt; }
  bool Commits(size_t i) const { return OfThisLog(i) && BigEndian(Frame(i), 4) != 0; }
  // By the sum that is stored with the frame before, right or wrong: so damage in one frame ends
  // there.
  bool Fits(size_t i) const {
    const std::string_view frame = Frame(i);
    const Pair before = i == 0 ? header_sum : PairAt(Frame(i - 1), 16);
    const Pair sum = Sum(Sum(before, frame.substr(0, 8)), frame.substr(kFrameHeaderBytes));
    return OfThisLog(i) && sum == PairAt(frame, 16);
  }
};

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(
      path, " is damaged: ", what,
      ". Opened as it is, the journal would forget what was committed behind that, jobs among it. "
      "Restore the journal from a backup; or move this log aside, to go on without anything in it; "
      "or the journal too, to begin with an empty one: checkpoints stay, and new jobs can "
      "resume them"));
}

// A header that does not fit makes SQLite take the log for empty. It is written when nothing in the
// log counts any more, with another first salt and a random second one, so frames that share one of
// them with it are its own.
absl::Status CheckHeader(const std::string& path, const Log& log, bool has_magic) {
  if (log.frames() == 0) return absl::OkStatus();
  const Pair first = PairAt(log.Frame(0), 8);
  if (first == Pair{}) return absl::OkStatus();  // zeros: a file that was made and never filled
  // The first bytes are the same in every header that SQLite writes.
  if (!has_magic) return Damaged(path, "its header");
  if (first[0] != log.salt[0] && first[1] != log.salt[1]) return absl::OkStatus();
  return Damaged(path, "its header");
}

std::optional<size_t> FirstMisfit(const Log& log) {
  for (size_t i = 0; i < log.frames(); ++i) {
    if (!log.Fits(i)) return i;
  }
  return std::nullopt;
}

// Behind the transaction that the frame is in. A frame behind one whose stored sum is wrong does
// not fit either.
bool WholeTransactionBehind(const Log& log, size_t misfit) {
  size_t i = misfit;
  while (i < log.frames() && !log.Commits(i)) ++i;
  bool whole = true;
  for (++i; i < log.frames(); ++i) {
    whole = whole && log.Fits(i);
    if (!log.Commits(i)) continue;
    if (whole) return true;
    whole = true;
  }
  return false;
}

}  // namespace

absl::Status CheckWriteAheadLog(const std::string& database_path) {
  const std::string path = database_path + "-wal";
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
  if (!there) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  Log log;
  log.bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    return absl::UnavailableError(absl::StrCat(path, ": it cannot be read"));
  }
  if (log.bytes.size() < kHeaderBytes) return absl::OkStatus();
  const std::string_view header = std::string_view(log.bytes).substr(0, kHeaderBytes);
  const uint32_t magic = BigEndian(header, 0);
  log.page_size = BigEndian(header, 8);
  if (!std::has_single_bit(log.page_size) || log.page_size < 512 || log.page_size > 65536) {
    log.page_size = kUsualPage;
  }
  log.big_endian = (magic & 1) != 0;
  log.salt = PairAt(header, 16);
  log.header_sum = PairAt(header, 24);
  const bool fits =
      (magic & ~1u) == kMagic && log.Sum({0, 0}, header.substr(0, 24)) == log.header_sum;
  if (!fits) return CheckHeader(path, log, (magic & ~1u) == kMagic);
  const std::optional<size_t> misfit = FirstMisfit(log);
  if (!misfit.has_value() || !WholeTransactionBehind(log, *misfit)) return absl::OkStatus();
  return Damaged(path, absl::StrCat("frame ", *misfit + 1, " of ", log.frames()));
}

}  // namespace stagecoach

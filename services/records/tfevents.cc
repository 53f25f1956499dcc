#include "services/records/tfevents.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"

namespace stagecoach {
namespace {

constexpr char kVersion[] = "brain.Event:2";
// Of protobuf: field number times 8 plus wire type (0 varint, 1 eight bytes, 2 length, 5 four
// bytes).
constexpr char kWallTime = 0x09, kStep = 0x10, kFileVersion = 0x1a, kSummary = 0x2a;
constexpr char kValue = 0x0a, kTag = 0x0a, kSimpleValue = 0x15;
// Names of one second that are tried before giving up.
constexpr int kNames = 100;

template <typename T>
void AppendLittleEndian(T value, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) *bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) *bytes += static_cast<char>((value & 0x7f) | 0x80);
  *bytes += static_cast<char>(value);
}

void AppendText(char tag, const std::string& text, std::string* bytes) {
  *bytes += tag;
  AppendVarint(text.size(), bytes);
  *bytes += text;
}

uint32_t MaskedCrc(const std::string& bytes) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return std::rotr(crc, 15) + 0xa282ead8u;
}

std::string Record(const std::string& payload) {
  std::string record;
  AppendLittleEndian(static_cast<uint64_t>(payload.size()), &record);
  AppendLittleEndian(MaskedCrc(record), &record);
  record += payload;
  AppendLittleEndian(MaskedCrc(payload), &record);
  return record;
}

std::string EventAt(double unix_seconds) {
  std::string event(1, kWallTime);
  AppendLittleEndian(std::bit_cast<uint64_t>(unix_seconds), &event);
  return event;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host) {
    if (c == '/') c = '-';
  }
  return host;
}

}  // namespace

std::string VersionEvent(double unix_seconds) {
  std::string event = EventAt(unix_seconds);
  AppendText(kFileVersion, kVersion, &event);
  return Record(event);
}

std::string ScalarsEvent(double unix_seconds, uint64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    AppendText(kTag, scalar.tag, &value);
    value += kSimpleValue;
    AppendLittleEndian(std::bit_cast<uint32_t>(static_cast<float>(scalar.value)), &value);
    AppendText(kValue, value, &summary);
  }
  std::string event = EventAt(unix_seconds);
  if (step != 0) {
    event += kStep;
    AppendVarint(step, &event);
  }
  AppendText(kSummary, summary, &event);
  return Record(event);
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder, double unix_seconds) {
  const auto second = static_cast<int64_t>(std::floor(unix_seconds));
  absl::StatusOr<AppendFile> file = absl::AlreadyExistsError(folder);
  // A process that died within the second may have taken the name.
  for (int i = 0; i < kNames && absl::IsAlreadyExists(file.status()); ++i) {
    file =
        AppendFile::Open(absl::StrCat(folder, "/events.out.tfevents.", second + i, ".", HostName()),
                         AppendFile::Mode::kNew);
  }
  RETURN_IF_ERROR(file.status());
  RETURN_IF_ERROR(file->Append(VersionEvent(unix_seconds)));
  return EventFile(std::move(*file));
}

absl::Status EventFile::Add(const std::string& events) { return file_.Append(events); }

}  // namespace stagecoach

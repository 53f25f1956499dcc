#include "services/records/tfevents.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/records/event_bytes.h"
#include "services/records/record_names.h"

namespace stagecoach {
namespace {

using event_bytes::AppendLittleEndian;
using event_bytes::AppendText;
using event_bytes::EventAt;
using event_bytes::Record;

constexpr char kVersion[] = "brain.Event:2";
// As in event_bytes.h.
constexpr char kFileVersion = 0x1a, kValue = 0x0a, kTag = 0x0a, kSimpleValue = 0x15;
// Names of one second that are tried before giving up.
constexpr int kNames = 100;

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
  return event_bytes::SummaryOf(unix_seconds, step, summary);
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder, double unix_seconds) {
  const auto second = static_cast<int64_t>(std::floor(unix_seconds));
  absl::StatusOr<AppendFile> file = absl::AlreadyExistsError(folder);
  // A process that died within the second may have taken the name.
  for (int i = 0; i < kNames && absl::IsAlreadyExists(file.status()); ++i) {
    file = AppendFile::Open(absl::StrCat(folder, "/", kEventsPrefix, second + i, ".", HostName()),
                            AppendFile::Mode::kNew);
  }
  RETURN_IF_ERROR(file.status());
  RETURN_IF_ERROR(file->Append(VersionEvent(unix_seconds)));
  return EventFile(std::move(*file));
}

absl::Status EventFile::Add(const std::string& events) { return file_.Append(events); }

}  // namespace stagecoach

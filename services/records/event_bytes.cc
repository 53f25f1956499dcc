#include "services/records/event_bytes.h"

#include <bit>
#include <span>

#include "base/files/hash.h"

namespace stagecoach::event_bytes {
namespace {

constexpr char kWallTime = 0x09, kStep = 0x10, kSummary = 0x2a, kValue = 0x0a;

uint32_t MaskedCrc(const std::string& bytes) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return std::rotr(crc, 15) + 0xa282ead8u;
}

}  // namespace

void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) *bytes += static_cast<char>((value & 0x7f) | 0x80);
  *bytes += static_cast<char>(value);
}

void AppendText(char tag, const std::string& text, std::string* bytes) {
  *bytes += tag;
  AppendVarint(text.size(), bytes);
  *bytes += text;
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

std::string SummaryOf(double unix_seconds, uint64_t step, const std::string& values) {
  std::string event = EventAt(unix_seconds);
  if (step != 0) {
    event += kStep;
    AppendVarint(step, &event);
  }
  AppendText(kSummary, values, &event);
  return Record(event);
}

std::string SummaryEvent(double unix_seconds, uint64_t step, const std::string& value) {
  std::string values;
  AppendText(kValue, value, &values);
  return SummaryOf(unix_seconds, step, values);
}

}  // namespace stagecoach::event_bytes

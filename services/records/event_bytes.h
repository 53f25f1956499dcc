// The bytes of event files: protobuf's wire format by hand, in TensorBoard's records. A field's tag
// is its number times 8 plus its wire type (0 varint, 1 eight bytes, 2 length, 5 four bytes).
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_RECORDS_EVENT_BYTES_H_
#define STAGECOACH_SERVICES_RECORDS_EVENT_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace stagecoach::event_bytes {

template <typename T>
void AppendLittleEndian(T value, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) *bytes += static_cast<char>(value >> (8 * i) & 0xff);
}
void AppendVarint(uint64_t value, std::string* bytes);
void AppendText(char tag, const std::string& text, std::string* bytes);  // or an inner message

// A payload with its length and checksums.
std::string Record(const std::string& payload);
std::string EventAt(double unix_seconds);  // the beginning of a payload
// A record of an event with these values of a summary, each with its tag in front.
std::string SummaryOf(double unix_seconds, uint64_t step, const std::string& values);
// The same with one value.
std::string SummaryEvent(double unix_seconds, uint64_t step, const std::string& value);

}  // namespace stagecoach::event_bytes

#endif  // STAGECOACH_SERVICES_RECORDS_EVENT_BYTES_H_

#include "coordinator/journal/row_checksums.h"

#include <bit>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"

namespace stagecoach {
namespace {

// Fields of one row as one text: each behind its length, so that none can be taken for a part of
// another.
class RowText {
 public:
  RowText& Add(const std::string& text) {
    absl::StrAppend(&text_, text.size(), ":", text);
    return *this;
  }
  RowText& Add(uint64_t value) {
    absl::StrAppend(&text_, value, ";");
    return *this;
  }
  // As SQLite gives it back: one NaN, and no sign of zero.
  RowText& Add(double value) {
    if (std::isnan(value)) return Add(std::string("nan"));
    return Add(std::bit_cast<uint64_t>(value == 0 ? 0.0 : value));
  }
  uint32_t Checksum() const { return Crc32c(std::as_bytes(std::span(text_))); }

 private:
  std::string text_;
};

}  // namespace

uint32_t RecordChecksum(const std::string& job, const JobRecord& record,
                        const std::string& measures) {
  return RowText()
      .Add(job)
      .Add(record.number)
      .Add(static_cast<uint64_t>(record.kind))
      .Add(record.unix_seconds)
      .Add(record.step)
      .Add(static_cast<uint64_t>(record.phase))
      .Add(record.message)
      .Add(record.loss)
      .Add(record.learning_rate)
      .Add(record.gradient_norm)
      .Add(record.tokens_per_second)
      .Add(record.step_seconds)
      .Add(record.bubble)
      .Add(record.bubble_ideal)
      .Add(uint64_t{record.skipped})
      .Add(record.nonfinite_steps)
      .Add(record.weights_digest)
      .Add(measures)
      .Checksum();
}

uint32_t EntryChecksum(const std::string& job, uint64_t sequence, double submitted_unix_seconds,
                       const std::string& spec, const std::string& owner) {
  return RowText()
      .Add(job)
      .Add(sequence)
      .Add(submitted_unix_seconds)
      .Add(spec)
      .Add(owner)
      .Checksum();
}

uint32_t TextChecksum(const std::string& job, const std::string& text) {
  return RowText().Add(job).Add(text).Checksum();
}

}  // namespace stagecoach

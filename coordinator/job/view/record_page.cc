#include "coordinator/job/view/record_page.h"

namespace stagecoach {
namespace {

constexpr size_t kPieceBytes = 64;

}  // namespace

size_t TextBytes(const WrittenPiece& piece) { return kPieceBytes + piece.text.size(); }

size_t TextBytes(const JobRecord& record) {
  size_t bytes = 0;
  for (const WrittenPiece& piece : record.written) bytes += TextBytes(piece);
  return bytes;
}

bool IsFullPage(std::span<const JobRecord> records, size_t most) {
  size_t bytes = 0;
  for (const JobRecord& record : records) bytes += TextBytes(record);
  return records.size() >= most || bytes >= kPageTextBytes;
}

}  // namespace stagecoach

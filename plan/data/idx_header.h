// IdxHeader: the header of an IDX file (docs/formats.md). It is 00 00, the type, the number of
// extents, and each extent as four bytes, the highest first. Type 08 is unsigned bytes, for images
// and labels. Type 0d is float32, for weights.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT that begin with `where` ("data.idx.images = "a""), with the value and
//          the remedy.
#ifndef STAGECOACH_PLAN_DATA_IDX_HEADER_H_
#define STAGECOACH_PLAN_DATA_IDX_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

enum class IdxContent { kImages, kLabels, kWeights };

struct IdxHeader {
  std::vector<int64_t> extents;  // the first counts the images, labels or weights
  int64_t number_bytes = 1;
  int64_t count() const { return extents.front(); }
  int64_t header_bytes() const { return 4 + 4 * static_cast<int64_t>(extents.size()); }
  int64_t item_bytes() const;  // of one image, label or weight
  int64_t file_bytes() const { return header_bytes() + count() * item_bytes(); }
  // Shape of an image: [height, width, channels].
  Shape image() const;
};

inline constexpr size_t kLongestIdxHeader = 4 + 4 * 4;
inline constexpr int64_t kMaxIdxCount = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxIdxImage = int64_t{1} << 30;  // numbers of an image

// head: the file's first bytes, kLongestIdxHeader of them or all there are, unpacked if it is gzip.
// With kFileKindBytes (base/files/file_kind.h) an error names the file's actual kind.
absl::StatusOr<IdxHeader> ParseIdxHeader(const std::string& where, IdxContent content,
                                         std::string_view head);

// The first bytes of a file's content: `head`, unpacked if the file is gzip.
absl::StatusOr<std::string> UnpackedIdxHead(const std::string& where, std::string_view head);

// Compares the header with the size of the file. An unpacked file has exactly the header's bytes.
// The size of a packed file only bounds its content.
absl::Status CheckIdxSize(const std::string& where, const IdxHeader& header, int64_t bytes,
                          const char* unit = "bytes");
absl::Status CheckPackedIdxSize(const std::string& where, const IdxHeader& header, int64_t packed);

// Whether the images are those that the network reads.
absl::Status CheckIdxImages(const std::string& where, const IdxHeader& header, const JobSpec& spec,
                            const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_IDX_HEADER_H_

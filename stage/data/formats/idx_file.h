// IdxFile: an IDX file, plain or gzip, read within the bounds that its header states. The images of
// a plain one stay on the disk until they are asked for; all else is kept in memory.
// Units:  bytes.
// Errors: as plan/data/idx_header.h and stage/data/formats/data_file.h; INVALID_ARGUMENT with both
//         numbers where the header and the content differ in size; DATA_LOSS if the gzip data is
//         damaged or cut off.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_IDX_FILE_H_
#define STAGECOACH_STAGE_DATA_FORMATS_IDX_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "plan/data/idx_header.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {

struct IdxFile {
  std::string where;         // "data.idx.images = "a"", for errors
  int64_t stored_bytes = 0;  // as the file is, packed or not
  IdxHeader header;
  std::vector<uint8_t> bytes;        // header and content; empty if it was not kept
  std::unique_ptr<OpenedFile> file;  // in place of the bytes
  // Of image, label or weight i, of bytes that were kept.
  std::span<const uint8_t> item(int64_t i) const;
  // Of either kind; any thread.
  absl::Status ReadItem(int64_t i, std::span<uint8_t> into) const;
};

// What a gzip file may unpack to in memory.
inline constexpr int64_t kMostUnpackedIdxBytes = int64_t{4} << 30;

// keep: the items will be asked for. The digest gets the file's size, eight bytes, the lowest
// first, and every byte as it is stored, kept or not.
absl::StatusOr<IdxFile> ReadIdxFile(const DataRoots& roots, const std::string& field,
                                    const std::string& path, IdxContent content, bool keep,
                                    Sha256* digest);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_IDX_FILE_H_

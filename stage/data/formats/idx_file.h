// IdxFile: an IDX file, plain or gzip, read within the bounds that its header states. The images of
// a plain one stay on the disk until a caller reads them; all else is kept in memory.
// Units:  bytes.
// Errors: as plan/data/idx_header.h and stage/data/formats/data_file.h; INVALID_ARGUMENT with both
//         numbers if the header and the content differ in size; DATA_LOSS if the gzip data is
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
  int64_t stored_bytes = 0;  // size of the file, packed or not
  IdxHeader header;
  std::vector<uint8_t> bytes;        // header and content; empty if it was not kept
  std::unique_ptr<OpenedFile> file;  // in place of the bytes
  // Bytes of image, label or weight i, if the bytes were kept.
  std::span<const uint8_t> item(int64_t i) const;
  // Item i, whether bytes were kept or not; any thread.
  absl::Status ReadItem(int64_t i, std::span<uint8_t> into) const;
};

// Upper bound of a gzip file's unpacked size in memory.
inline constexpr int64_t kMostUnpackedIdxBytes = int64_t{4} << 30;

// keep: the caller will read items. The digest gets the file's size, eight bytes, the lowest first,
// and every byte as it is stored, kept or not.
absl::StatusOr<IdxFile> ReadIdxFile(const DataRoots& roots, const std::string& field,
                                    const std::string& path, IdxContent content, bool keep,
                                    Sha256* digest);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_IDX_FILE_H_
